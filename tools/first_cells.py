"""Writes the first cells of all chapters: how Kaggle and Colab get the course, or why they cannot.

    python tools/first_cells.py  # in the course's folder

Such a host opens one notebook, without the course around it. So the first code cell of each chapter
that can run there installs the package from the repository whose address is in ``_config.yml``. The
address is in the notebooks as well, for a host sees nothing else: they are rewritten where
it has changed, and `make book` does so.
"""

from pathlib import Path

import nbformat
import yaml
from notebook import normalise  # tools/notebook.py

HOSTED = (
    "**No GPU?** Where these pages are published, the menu under this page's rocket opens it on a "
    "free one. On *Kaggle*, choose *GPU T4 x2* as accelerator and turn the internet on, in the "
    "notebook's settings: two real GPUs. On *Colab*, choose a GPU as runtime: it is one, and two "
    "{term}`devices <device>` share it, {term}`simulated` (`D2LMGPU_DEVICES=gpu:2`). The first "
    "cell there brings the course; elsewhere it does nothing. *Neither host has been tried with "
    "this course.*"
)

CLUSTERS = (
    "**No cluster?** This page needs none, and no GPU: where it may not make hosts of its own, it "
    "shows what was recorded. Where these pages are published, the menu under its rocket opens it "
    "on Kaggle and Colab. The first cell there brings the course; elsewhere it does nothing. "
    "*Neither host has been tried with this course.*"
)

NOT_HOSTED = (
    "**No GPU?** This page works without one. Kaggle and Colab have free ones, but not for MXNet: "
    "its last release needs NumPy below 1.24 and with it Python 3.11 or older, and they have newer "
    "ones. [A counterpart in PyTorch]({counterpart}) runs there."
)

CELL = """\
# On Kaggle and Colab this cell brings the course. Elsewhere it does nothing.
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
from d2lmgpu.course import hosted

hosted.enter("{part}")"""

COUNTERPARTS = {
    "scratch/mxnet": "pytorch.ipynb",
    "concise/mxnet": "pytorch.ipynb",
    "lab/gluon-mnist": "../concise/pytorch.ipynb",
}
WITHOUT_GPU = {  # they compute on CPU cores wherever they run, and so say nothing of free GPUs
    "foundations/data-parallelism",
    "scaling/batch-size",
    "memory/fits",
    "memory/sharding",
    "diagnosis/profile",
    "diagnosis/hangs",
    "diagnosis/your-own-script",
}
TAG = "hosted"  # of these cells


def first_cells(name, repository):
    """The first cells of a chapter, as 'scratch/pytorch', after the one with its title."""
    if name in COUNTERPARTS:
        text = NOT_HOSTED.format(counterpart=COUNTERPARTS[name])
        return [nbformat.v4.new_markdown_cell(text, metadata={"tags": [TAG]})]
    code = CELL.format(part=Path(name).parent, **repository)
    tags = [TAG, "nbval-ignore-output", "remove-cell"]  # the book shows the note only
    cells = [nbformat.v4.new_code_cell(code, metadata={"tags": tags})]
    if name not in WITHOUT_GPU:
        note = CLUSTERS if name.startswith("clusters/") else HOSTED
        cells.insert(0, nbformat.v4.new_markdown_cell(note, metadata={"tags": [TAG]}))
    return cells


def put(notebook, name, repository):
    """Put the first cells into a notebook, in the place of those that it has; it counts anew."""
    cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    notebook.cells = [cells[0], *first_cells(name, repository), *cells[1:]]
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            count += 1
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = count
            cell.execution_count = count


def write(root):
    """Put the first cells into all chapters of ``root``; the names of those that were changed."""
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
    for name in write(Path.cwd()):
        print(f"chapters/{name}.ipynb: the first cells were written")
