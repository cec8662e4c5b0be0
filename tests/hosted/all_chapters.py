"""Every page that a free host can run, alone, on each Python that the package is for: minutes each.

    python -m pytest -s tests/hosted/all_chapters.py

On Python 3.11 from this environment's own packages; on the others pip gets them, several GB unless
TORCH_INDEX names the index of PyTorch for CPUs. An interpreter that is missing is named.
"""

import os
import shutil
import subprocess
from pathlib import Path
from time import perf_counter

import pytest
from free_host import HAS, ROOT, Host, read
from test_chapters_alone import run_alone

NAMES = [
    path.relative_to(ROOT / "chapters").with_suffix("").as_posix()
    for path in sorted(ROOT.glob("chapters/*/*.ipynb"))
]
HOSTED = [
    name
    for name in NAMES
    if any("hosted" in c.metadata.get("tags", []) for c in read(name).cells if "outputs" in c)
]
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))


def interpreter(version):
    """A Python of that version, from pyenv or the PATH; fails with what was looked for."""
    for place in (*sorted(PYENV.glob(f"versions/{version}.*/bin")), None):  # None: the PATH
        program = shutil.which(f"python{version}", path=place)
        if program and not subprocess.run([program, "-c", "import venv, ensurepip"]).returncode:
            return program
    pytest.fail(
        f"no Python {version} in {PYENV}/versions or the PATH: install it, for instance with "
        f"'pyenv install {version}'"
    )


class OtherHost(Host):
    """A host of another Python, with what pip gets from an index."""

    def __init__(self, folder, program, wheel):
        self.program = program
        super().__init__(folder)
        torch = ["--index-url", os.environ["TORCH_INDEX"]] if os.environ.get("TORCH_INDEX") else []
        self.run("-m", "pip", "install", "-q", "torch", *torch)
        self.run("-m", "pip", "install", "-q", *HAS, f"{wheel}[torch,lab]")

    def fill(self, packages):
        subprocess.run([self.program, "-m", "venv", self.folder / "env"], check=True)


@pytest.fixture(scope="module", params=["3.10", "3.11", "3.12", "3.13"])
def host(request, tmp_path_factory, wheel):
    if request.param == "3.11":
        return request.getfixturevalue("alone")
    return OtherHost(tmp_path_factory.mktemp("host"), interpreter(request.param), wheel)


@pytest.mark.parametrize("name", HOSTED)
def test_chapter_runs(host, tmp_path, name):
    start = perf_counter()
    run_alone(host, name, tmp_path)
    print(f"{host.run('-V').strip()}, {name}: {perf_counter() - start:.0f} s")
