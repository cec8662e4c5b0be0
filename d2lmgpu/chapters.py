"""The code that a chapter teaches, run outside of a notebook.

Tests, records and benchmarks use a chapter's own ``train``, not a copy of it.
"""

import json
from pathlib import Path

TAGS = {"save", "define"}


def load(path) -> dict:
    """Run the cells of the notebook ``path`` tagged ``save`` or ``define``; return their names.

    What they define counts as defined in ``__main__``, as in a notebook, so that it can be sent
    to worker processes. Raises ValueError if no cell is tagged.
    """
    namespace = {"__name__": "__main__"}
    ran = 0
    for number, cell in enumerate(json.loads(Path(path).read_text())["cells"]):
        if cell["cell_type"] == "code" and TAGS & set(cell["metadata"].get("tags", [])):
            exec(compile("".join(cell["source"]), f"{path}, cell {number}", "exec"), namespace)
            ran += 1
    if not ran:
        raise ValueError(f"{path}: no cell is tagged {' or '.join(sorted(TAGS))}.")
    return namespace
