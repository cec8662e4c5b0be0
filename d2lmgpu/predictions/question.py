"""Predict first: a question whose answer the reader locks, drawn beside what then happens.

    prediction = Prediction("scratch-pytorch/two devices",
                            "How many times as fast are two devices?", low=0, high=4)
    prediction

in one cell, and in a later one, as its last line, ``prediction.happened(speedup)``. In a live
notebook both are widgets. In a built page they are HTML, the reader's browser keeps the prediction,
and what stands between the two cells is blurred until a number is locked, or the reader does
without. A notebook in which nobody predicts runs through.
"""

import os
from html import escape

from d2lmgpu.figures.site import BOOK
from d2lmgpu.machine.checks import is_real
from d2lmgpu.predictions import store, words
from d2lmgpu.predictions.entry import Entry
from d2lmgpu.predictions.store import PredictionError, need
from d2lmgpu.predictions.widget import Output


class Prediction:
    """A question of the page, shown as a field with a lock.

    What is locked stays locked, in every kernel, unless it is taken back before the outcome is
    shown.

    Parameters
    ----------
    name : str
        The page and the question: 'scratch-pytorch/two devices'.
    question : str
    unit : str
        Of the number; empty for none.
    low, high : float
        Bounds of what can be predicted, in ``unit``, and the ends of the axis.

    Raises
    ------
    PredictionError
        For arguments of another type, and unless ``low`` is below ``high``.
    """

    def __init__(self, name: str, question: str, unit: str = "", *, low: float, high: float):
        store.check_name(name)
        for label, text in (("question", question), ("unit", unit)):
            need(isinstance(text, str), label, text, "a text")
        for label, end in (("low", low), ("high", high)):
            need(is_real(end), label, end, "a finite number")
        need(low < high, "high", high, f"more than low, {low}")
        self.name = name
        self.question = question
        self.unit = unit
        self.low = low
        self.high = high
        self._outcome = None
        self._unsteady = ""
        self._failure = ""  # of the button that was pressed last
        self._field = Output(
            self._field_entry,
            f"<p>{escape(question)}</p>",
            self._on_button(self.lock),
            self._on_button(self.take_back),
        )
        self._answer = None  # the newest output of `happened`

    def __repr__(self):
        return repr(self._field)

    def _repr_mimebundle_(self, **kwargs):
        return self._field._repr_mimebundle_(**kwargs)

    @property
    def value(self) -> float | None:
        """The number that is locked, in ``unit``, or None."""
        locked = store.read(self.name)["predicted"]
        return locked and locked["value"]

    def lock(self, value: float) -> None:
        """Lock a number without the field.

        Parameters
        ----------
        value : float
            In ``unit``.

        Raises
        ------
        PredictionError
            Where another one is locked, and for what is outside of the bounds.
        """
        need(is_real(value), "The prediction", value, "a finite number")
        allowed = f"a number from {self.low:g} to {self.high:g}"
        need(self.low <= value <= self.high, "The prediction", value, allowed)
        store.lock(self.name, value, self.question, self.unit)
        self._redraw()

    def take_back(self) -> None:
        """Forget what is locked.

        Raises
        ------
        PredictionError
            Once the outcome has been shown.
        """
        store.take_back(self.name)
        self._redraw()

    def happened(self, value: float, source: str = "measured", unsteady: str = "") -> Output:
        """What happened, to be shown: beside the prediction, or with the word that there is none.

        Parameters
        ----------
        value : float
            In ``unit``.
        source : str
            How it is known: 'measured', 'simulated', 'modelled' or 'counted'.
        unsteady : str
            Why it cannot be trusted (as ``Run.unsteady``); it then judges no prediction.

        Returns
        -------
        Output
            What a notebook shows if it is the last line of a cell.

        Raises
        ------
        PredictionError
            For another ``source``, and for what is no number.
        """
        need(isinstance(unsteady, str), "unsteady", unsteady, "why, as a text, or an empty one")
        self._outcome = store.outcome(value, source)
        self._unsteady = unsteady
        if not unsteady and not os.environ.get(BOOK):
            store.record_outcome(self.name, value, source)
        sentence = escape(words.happened(self._outcome, self.unit))
        folded = f"<details><summary>What happened</summary><p>{sentence}</p></details>"
        self._answer = Output(self._outcome_entry, folded)
        self._redraw()
        return self._answer

    def _on_button(self, change):
        """``change``, whose refusal is shown in the field: a browser catches no exception."""

        def changed(*value):
            self._failure = ""
            try:
                change(*value)
            except PredictionError as error:
                self._failure = str(error)
                self._redraw()

        return changed

    def _redraw(self):
        for output in filter(None, (self._field, self._answer)):
            output.redraw()

    def _entry(self, part) -> Entry:
        if os.environ.get(BOOK):  # the page is every reader's
            known = {"name": self.name, "predicted": None, "happened": None, "remark": ""}
        else:
            known = store.read(self.name)
        return known | {
            "part": part,
            "question": self.question,
            "unit": self.unit,
            "low": self.low,
            "high": self.high,
            "remark": " ".join(filter(None, (known["remark"], self._failure))),
        }

    def _field_entry(self) -> Entry:
        entry = self._entry("field")
        return entry | {"happened": None, "final": entry["happened"] is not None}

    def _outcome_entry(self) -> Entry:
        shown = {"happened": self._outcome, "unsteady": self._unsteady}
        return self._entry("outcome") | shown
