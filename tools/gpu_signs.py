"""Signs the cells that take GPUs: with the machine on which just this code has run, by a record in
records/, or with a mark that it has not run on any.

    python tools/gpu_signs.py

``make gpu-check`` runs it. A cell whose code was changed since its record has its mark again.
"""

import sys
from pathlib import Path

import nbformat
from chapter import normalise

from d2lmgpu.course.gpu_cells import gpu_cells, kept_records, sign


def write(root) -> list[str]:
    """Sign all cells of ``root``; the places of those whose sign was changed."""
    records, changed = kept_records(root / "records"), []
    for cell in gpu_cells(root / "chapters"):
        line = sign(cell, records)
        if line != cell.sign:
            path = root / "chapters" / cell.page
            notebook = nbformat.read(path, as_version=4)
            notebook.cells[cell.number].source = f"{line}\n{cell.code}"
            normalise(notebook)
            nbformat.write(notebook, path)
            changed.append(f"chapters/{cell.page}, {cell.section}: {line.removeprefix('# ')}")
    return changed


if __name__ == "__main__":
    try:
        for line in write(Path.cwd()):
            print(line)
    except ValueError as error:
        sys.exit(str(error))
