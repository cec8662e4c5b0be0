"""All predictions of the reader beside what happened: a table that can be handed in."""

import csv
import os

from d2lmgpu.predictions import store
from d2lmgpu.predictions.entry import Known, Row
from d2lmgpu.predictions.widget import Output
from d2lmgpu.predictions.words import errors


def predictions() -> "Table":
    """All predictions of the reader, shown as a table that can be saved as CSV.

    In a built page they are those that the reader's browser keeps.

    Returns
    -------
    Table
        Its ``rows`` are dicts with both numbers and the errors; ``save(path)`` writes the CSV.
    """
    return Table()


class Table(Output):
    """Every prediction beside what happened."""

    def __init__(self):
        super().__init__(
            lambda: {"part": "table", "entries": store.read_all()},
            "<p>Without scripts this page keeps no predictions.</p>",
        )

    @property
    def rows(self) -> list[Row]:
        """A dict for each prediction, with the columns of the CSV."""
        return [_row(known) for known in self.entry()["entries"]]

    def save(self, path: str | os.PathLike) -> "Table":
        """Write the rows to a CSV file, as the button under the table does; gives the table back.

        Raises OSError where that cannot be written.
        """
        columns = list(Row.__annotations__)
        with open(path, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, columns, quoting=csv.QUOTE_ALL, lineterminator="\n")
            table.writeheader()
            table.writerows(self.rows)
        return self


def _row(known: Known) -> Row:
    locked = known["predicted"] or {}
    outcome = known["happened"] or {}
    error, percent = errors(locked, outcome) if locked and outcome else (None, None)
    return {
        "name": known["name"],
        "question": known["question"],
        "unit": known["unit"],
        "predicted": locked.get("value"),
        "happened": outcome.get("value"),
        "source": outcome.get("source"),
        "error": error,
        "percent": percent,
        "locked": locked.get("time"),
        "after_outcome": locked.get("shown"),
        "remark": known["remark"],
    }
