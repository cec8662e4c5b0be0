"""Writes the first cell of each chapter, with which Kaggle and Colab get the course.

    python tools/first_cells.py  # in the course's folder

Such a host opens one notebook, without the course around it. So the first code cell of each chapter
that says it is ``hosted`` (chapter_facts.py) installs the package from the repository whose address
is in ``_config.yml``. Until that is a real one there are no such cells. The address is in the
notebooks as well, for a host sees nothing else: they are rewritten where it has changed, and
`make book` does so.
"""

import sys
from pathlib import Path

import nbformat
import yaml
from chapter import normalise
from chapter_facts import FactsError, facts

sys.path.append(str(Path(__file__).resolve().parents[1] / "hub"))
from course import is_published

CELL = """\
#@title On Kaggle and Colab this cell brings the course. Elsewhere it does nothing.
import subprocess, sys
from importlib.util import find_spec

COURSE = "git+{url}@{branch}"
if not find_spec("d2lmgpu"):
    install = [sys.executable, "-m", "pip", "install", "-q", f"d2lmgpu[lab] @ {{COURSE}}"]
    if subprocess.run(install).returncode:
        raise RuntimeError(
            "The course could not be installed: pip says why, above. Without internet "
            "(Kaggle: Settings) it cannot be."
        )
from d2lmgpu.course import hosted_notebook

hosted_notebook.enter("{part}")"""

TAG = "hosted"  # of this cell


def first_cells(name, hosted, repository) -> list:
    """What comes after the title of a chapter, as 'scratch/pytorch': one cell, or none.

    It is folded: JupyterLab and Colab show its first line.
    """
    if not hosted or not is_published(repository["url"]):
        return []
    code = CELL.format(part=Path(name).parent, **repository)
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    tags = [TAG, "nbval-ignore-output", "remove-cell"]
    return [nbformat.v4.new_code_cell(code, metadata={"tags": tags, **folded})]


def put(notebook, name, repository) -> None:
    """Put the first cell into a notebook, in the place of the one that it has; it counts anew."""
    cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    first = first_cells(name, facts(notebook, name).hosted, repository)
    notebook.cells = [cells[0], *first, *cells[1:]]
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            count += 1
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = count
            cell.execution_count = count


def write(root) -> list:
    """Put the first cell into all chapters of ``root``; the names of those that were changed."""
    repository = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    changed = []
    for path in sorted((root / "chapters").glob("*/*.ipynb")):
        before = path.read_text(encoding="utf-8")
        notebook = nbformat.reads(before, as_version=4)
        name = path.relative_to(root / "chapters").with_suffix("").as_posix()
        put(notebook, name, repository)
        normalise(notebook)
        nbformat.write(notebook, path)
        if path.read_text(encoding="utf-8") != before:
            changed.append(name)
    return changed


if __name__ == "__main__":
    try:
        for name in write(Path.cwd()):
            print(f"chapters/{name}.ipynb: the first cell was written")
    except FactsError as error:
        sys.exit(str(error))
