"""Runs chapters and stores what belongs into the repository, nothing else.

    python tools/chapter.py chapters/scratch/pytorch.ipynb ...

A chapter is run from top to bottom in its own folder. The outputs of its checked cells (tagged
``nbval-check-output``) are stored, for nbval compares with them; all other outputs are dropped.
Execution counts stay, because nbval passes a cell without a count unchecked. Metadata and cell ids
depend on the text alone, so that a difference shows only what was changed.
"""

import hashlib
import sys
from collections import Counter
from pathlib import Path

import nbformat
from chapter_facts import KEY
from jupyter_kernels import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CHECKED = "nbval-check-output"
KEEP = "keep_output"  # what nbstripout goes by
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "mystnb", "otter", "jupyter", "cellView")


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Keeps the text, the chapter's facts, the tags, the counts and the checked outputs."""
    facts = {KEY: notebook.metadata[KEY]} if KEY in notebook.metadata else {}
    notebook.metadata = nbformat.from_dict(METADATA | facts)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: Counter = Counter()
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in CELL_METADATA}
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] += 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and CHECKED not in tags:
            cell.outputs = []
        elif CHECKED in tags:
            # Standard error has times and numbers of processes, and is not compared.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            if KEEP not in tags:
                tags.append(KEEP)


def run(path: str) -> None:
    """Runs and stores a chapter; raises ``CellExecutionError`` at the first cell that fails."""
    notebook = nbformat.read(path, as_version=4)
    options = {"timeout": None, "record_timing": False, "coalesce_streams": True}
    options |= {"kernel_name": "python3", "kernel_manager_class": AsyncKernelManager}
    folder = {"metadata": {"path": str(Path(path).parent)}}
    NotebookClient(notebook, resources=folder, **options).execute()
    normalise(notebook)
    nbformat.write(notebook, path)


def main(paths: list[str]) -> None:
    for path in paths:
        try:
            run(path)
        except (OSError, CellExecutionError) as error:
            sys.exit(f"{path}: not run to the end, and not stored.\n{error}")
        print(f"{path}: run and stored")


if __name__ == "__main__":
    main(sys.argv[1:])
