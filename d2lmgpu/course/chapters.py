"""The code that a chapter teaches, run outside of a notebook.

Tests, records and benchmarks use a chapter's own ``train``, not a copy of it.
"""

import json
from pathlib import Path

TAGS = {"save", "define"}


class ChapterError(ValueError):
    """A file is not a chapter from which this can be run."""


def load(path) -> dict:
    """Run the cells of the notebook ``path`` tagged ``save`` or ``define``; return their names.

    What they define counts as defined in ``__main__``, as in a notebook, so that it can be sent
    to worker processes. Raises ChapterError if the file is no notebook or no cell is tagged;
    what a cell raises is passed on.
    """
    sources = tagged(path)
    if not sources:
        raise ChapterError(f"{path}: no cell is tagged {' or '.join(sorted(TAGS))}.")
    namespace = {"__name__": "__main__"}
    for number, source in sources.items():
        exec(compile(source, f"{path}, cell {number}", "exec"), namespace)
    return namespace


def load_training(path) -> tuple:
    """``(names, train)`` of a chapter that trains: a backend is its ``d2l``.

    ``train`` is what it calls so, else ``run``. Raises ChapterError where one of them is missing.
    """
    namespace = load(path)
    train = namespace.get("train") or namespace.get("run")
    for name, value in {"d2l": namespace.get("d2l"), "train": train}.items():
        if value is None:
            raise ChapterError(f"{path} defines no {name}: only chapters that train have one.")
    return namespace, train


def tagged(path) -> dict[int, str]:
    """{number of the cell: its code} of the tagged cells; ChapterError if it is no notebook."""
    try:
        return {
            number: "".join(cell["source"])
            for number, cell in enumerate(json.loads(Path(path).read_text("utf-8"))["cells"])
            if cell["cell_type"] == "code" and TAGS & set(cell["metadata"].get("tags", []))
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ChapterError(f"{path} is no notebook: {error!r}. Download it again.") from error
