"""What is imported is required, and what is required is used: in both directions, nothing else."""

import ast
import json
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import tomllib
from packages import brought_by
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tracked import tracked

ROOT = Path(__file__).resolve().parents[2]
BROUGHT_ALONG = "# What those bring along."

# Required by name, not imported: where each of them is used.
USED_IN = {
    "codespell": "Makefile",
    "hatchling": "pyproject.toml",
    "ipykernel": "hub/kernel.py",
    "jupyter-book": "tools/book.py",
    "jupyter-resource-usage": "tests/hub/running_hub.py",
    "jupyterhub-idle-culler": "hub/jupyterhub_config.py",
    "jupytext": "CONTRIBUTING.md",
    "nbstripout": "tools/chapter.py",
    "nbval": "Makefile",
    "pytest-xdist": "Makefile",
    "ruff": "Makefile",
    "sphinx-book-theme": "_config.yml",
    "sphinxcontrib-bibtex": "_config.yml",
    "voila": "Makefile",
}
FOR_GPUS = ("nvidia-", "cuda-", "triton")  # what a torch that was not built for CPUs brings
BY_STRING = {"d2l"}  # the backends import it as a string, when a name of it is asked for


def sources(*places):
    """(name, code) of every tracked Python file and notebook under these places.

    Without tests/frameworks, which have an environment of their own.
    """
    for path in tracked(*places):
        name = str(path.relative_to(ROOT))
        if name.startswith("tests/frameworks/"):
            continue
        if path.suffix == ".py":
            yield name, path.read_text()
        elif path.suffix == ".ipynb":
            for cell in json.loads(path.read_text())["cells"]:
                if cell["cell_type"] == "code":
                    yield name, "".join(cell["source"])


def imported(*places):
    """The packages of other people that are imported there, by the names they are installed as."""
    tops = set()
    for name, code in sources(*places):
        for node in ast.walk(ast.parse(code, name)):
            if isinstance(node, ast.Import):
                tops |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                tops.add(node.module.split(".")[0])
    ours = {path.stem for path in ROOT.glob("*") if path.is_dir()}
    folders = "tests", "hub", "tools", "chapters"  # a page may import the script beside it
    ours |= {path.stem for folder in folders for path in (ROOT / folder).rglob("*.py")}
    installed = packages_distributions()
    return {
        canonicalize_name(installed.get(top, [top])[0])
        for top in tops - ours - set(sys.stdlib_module_names)
    }


def pinned():
    """(asked for, brought along): the names in the two parts of requirements.txt."""
    parts = (ROOT / "requirements.txt").read_text().split(BROUGHT_ALONG)
    return [
        {canonicalize_name(line.split("==")[0]) for line in part.splitlines() if "==" in line}
        for part in parts
    ]


def test_every_import_is_asked_for_and_everything_asked_for_is_used():
    used = imported("d2lmgpu", "tools", "hub", "benchmarks", "tests", "chapters")
    asked, _ = pinned()
    assert used - asked == set(), "imported, but not in the first part of requirements.txt"
    assert asked - used - set(USED_IN) == set(), "in requirements.txt, but nothing uses it"
    for name, place in USED_IN.items():
        words = (name, name.replace("-", "_"), name.removeprefix("sphinxcontrib-"))
        assert any(word in (ROOT / place).read_text() for word in words), (name, place)


def test_what_is_brought_along_is_exactly_what_is_needed():
    asked, along = pinned()
    needed = brought_by(asked) - asked
    assert along - needed == set(), "nothing needs these"
    mine = {name for name in needed - along if not name.startswith(FOR_GPUS)}
    assert mine == set(), "these have no version of their own"


def test_the_package_declares_what_it_imports_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for lines in extras for line in lines)]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    assert declared == imported("d2lmgpu") | BY_STRING
