"""Predict first: a question whose answer the reader locks, drawn beside what then happens.

    prediction = Prediction("scratch-pytorch/two devices",
                            "How many times as fast are two devices?", low=0, high=4)
    prediction

in one cell, and in a later one, as its last line, ``prediction.happened(speedup)``. In a live
notebook both are widgets. In a built page they are HTML, the reader's browser keeps the prediction,
and what stands between the two cells is blurred until a number is locked, or the reader does
without. A notebook in which nobody predicts runs through.
"""

import csv
import json
import os
import re
from html import escape

from traitlets import Dict

from d2lmgpu.figures.site import BOOK, joined
from d2lmgpu.lab import predicted
from d2lmgpu.lab.compared import COLUMNS, quantity, row, said
from d2lmgpu.lab.predicted import PredictionError, need
from d2lmgpu.lab.scripts import in_package
from d2lmgpu.lab.widget import MessageError, Widget
from d2lmgpu.machine.checks import is_real


class Sheet(Widget):
    """One output in a live notebook.

    ``entry`` is what prediction.js draws; ``lock`` and ``take_back`` are what its buttons do.
    """

    words = "A prediction: run this cell, and it is here."
    _esm = (
        joined(*in_package("prediction.js", "predictions.js"))
        + "\nexport default { render: predictionWidget };"
    )
    _css = joined(*in_package("prediction.css"))
    entry = Dict().tag(sync=True)

    def __init__(self, entry, lock, take_back):
        super().__init__(entry=entry)
        self.lock, self.take_back = lock, take_back

    def do_lock(self, value: float | int):
        """Keep what the reader predicts."""
        if self.lock is None:
            raise MessageError("Nothing can be predicted here.")
        self.lock(value)

    def do_take_back(self):
        """Forget it."""
        if self.take_back is None:
            raise MessageError("Nothing can be taken back here.")
        self.take_back()


class Part:
    """What a cell shows: a widget, or HTML while the book is built; ``entry()`` is its content."""

    def __init__(self, entry, fallback, lock=None, take_back=None):
        self.entry, self.fallback, self.sheet = entry, fallback, None
        self.lock, self.take_back = lock, take_back

    def __repr__(self):
        return said(self.entry())

    def _repr_mimebundle_(self, **kwargs):
        entry = self.entry()
        if os.environ.get(BOOK):
            return {"text/html": html(entry, self.fallback)}
        if self.sheet is None:
            self.sheet = Sheet(entry, self.lock, self.take_back)
        bundle, metadata = self.sheet._repr_mimebundle_(**kwargs)
        return bundle | {"text/plain": said(entry)}, metadata

    def tell(self):
        """Draw again."""
        if self.sheet is not None:
            self.sheet.entry = self.entry()


class Prediction:
    """A question of the page, shown as a field with a lock.

    ``name`` is the page and the question, 'scratch-pytorch/two devices': what is locked under it
    stays locked, in every kernel, unless it is taken back before the outcome is shown. ``low`` and
    ``high`` bound what can be predicted, and are the ends of the axis. Raises PredictionError for
    arguments of another type.
    """

    def __init__(self, name, question, unit="", *, low, high):
        predicted.check_name(name)
        for label, text in (("question", question), ("unit", unit)):
            need(isinstance(text, str), label, text, "a text")
        for label, end in (("low", low), ("high", high)):
            need(is_real(end), label, end, "a finite number")
        need(low < high, "high", high, f"more than low, {low}")
        self.name, self.question, self.unit = name, question, unit
        self.low, self.high = low, high
        self._outcome, self._unsteady, self._trouble = None, "", ""
        words = f"<p>{escape(question)}</p>"
        self._field = Part(self._ask, words, self._try(self.lock), self._try(self.take_back))
        self._answer = None  # the newest of them

    def __repr__(self):
        return repr(self._field)

    def _repr_mimebundle_(self, **kwargs):
        return self._field._repr_mimebundle_(**kwargs)

    @property
    def value(self):
        """The number that is locked, or None."""
        locked = predicted.read(self.name)["predicted"]
        return locked and locked["value"]

    def lock(self, value):
        """Lock a number without the field; PredictionError where another one is locked."""
        need(is_real(value), "The prediction", value, "a finite number")
        allowed = f"a number from {self.low:g} to {self.high:g}"
        need(self.low <= value <= self.high, "The prediction", value, allowed)
        predicted.lock(self.name, value, self.question, self.unit)
        self._tell()

    def take_back(self):
        """Forget what is locked; PredictionError once the outcome has been shown."""
        predicted.take_back(self.name)
        self._tell()

    def happened(self, value, source="measured", unsteady=""):
        """What happened, to be shown: beside the prediction, or with the word that there is none.

        ``source`` says how ``value`` is known: 'measured', 'simulated', 'modelled' or 'counted';
        ``unsteady`` why it cannot be trusted (as ``Run.unsteady``). It then judges no prediction.
        """
        need(isinstance(unsteady, str), "unsteady", unsteady, "why, as a text, or an empty one")
        self._outcome, self._unsteady = predicted.outcome(value, source), unsteady
        if not unsteady and not os.environ.get(BOOK):
            predicted.happened(self.name, value, source)
        words = escape(f"{source.capitalize()}: {quantity(self._compare(), 'happened')}.")
        folded = f"<details><summary>What happened</summary><p>{words}</p></details>"
        self._answer = Part(self._compare, folded)
        self._tell()
        return self._answer

    def _try(self, change):
        def tried(*value):
            try:
                self._trouble = ""
                change(*value)
            except PredictionError as error:
                self._trouble = str(error)
                self._tell()

        return tried

    def _tell(self):
        for part in filter(None, (self._field, self._answer)):
            part.tell()

    def _known(self, part):
        asked = {"question": self.question, "unit": self.unit, "low": self.low, "high": self.high}
        here = {"name": self.name, "predicted": None, "happened": None, "remark": ""}
        known = here if os.environ.get(BOOK) else predicted.read(self.name)
        remark = " ".join(filter(None, (known["remark"], self._trouble)))
        return known | asked | {"part": part, "remark": remark}

    def _ask(self):
        known = self._known("field")
        return known | {"happened": None, "final": known["happened"] is not None}

    def _compare(self):
        about = {"happened": self._outcome, "unsteady": self._unsteady}
        return self._known("outcome") | about


def predictions():
    """All predictions of the reader, shown as a table that can be saved as CSV.

    Its ``rows`` are dicts with both numbers and the errors. In a built page they are those that the
    reader's browser keeps.
    """
    return Table(lambda: {"part": "table", "entries": predicted.everything()},
                 "<p>Without scripts this page keeps no predictions.</p>")  # fmt: skip


class Table(Part):
    """Every prediction beside what happened."""

    @property
    def rows(self):
        return [row(entry) for entry in self.entry()["entries"]]

    def save(self, path):
        """Write the rows to a CSV file, as the button under the table does; gives the table back.

        Raises OSError where that cannot be written.
        """
        with open(path, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, quoting=csv.QUOTE_ALL, lineterminator="\n")
            table.writeheader()
            table.writerows(self.rows)
        return self


def html(entry, fallback):
    """An element that prediction.js makes work; ``fallback`` shows without scripts."""
    place = "-".join(["prediction", *re.findall(r"\w+", entry.get("name", "table"))])
    place += "-outcome" * (entry["part"] == "outcome")
    if entry["part"] == "table":
        entry = entry | {"entries": []}
    data = escape(json.dumps(entry))
    return f'<div class="prediction" id="{place}" data-prediction="{data}">{fallback}</div>'
