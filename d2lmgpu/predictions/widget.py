"""What a cell shows of a prediction: a widget in a live notebook, HTML while the book is built."""

import json
import os
import re
from collections.abc import Callable
from html import escape

from traitlets import Dict

from d2lmgpu.figures.site import BOOK, joined
from d2lmgpu.figures.widget import MessageError, Widget
from d2lmgpu.predictions import SCRIPT, STYLE, words
from d2lmgpu.predictions.entry import Entry


class Sheet(Widget):
    """One output in a live notebook.

    ``entry`` is what ``web/predictions.js`` draws; ``lock`` and ``take_back`` are what its buttons
    do, None for those that it has not.
    """

    words = "A prediction: run this cell, and it is here."
    _esm = f"{joined(SCRIPT)}\nexport default {{ render: predictionWidget }};"
    _css = joined(STYLE)
    entry = Dict().tag(sync=True)

    def __init__(self, entry, lock, take_back):
        super().__init__(entry=entry)
        self.lock = lock
        self.take_back = take_back

    @property
    def commands(self) -> dict[str, Callable]:
        """What its two buttons call."""
        return {"lock": self.keep, "take_back": self.forget}

    def keep(self, value: float | int) -> None:
        """Keep what the reader predicts."""
        if self.lock is None:
            raise MessageError("Nothing can be predicted here.")
        self.lock(value)

    def forget(self) -> None:
        """Forget it."""
        if self.take_back is None:
            raise MessageError("Nothing can be taken back here.")
        self.take_back()


class Output:
    """What a cell shows; ``entry()`` is its content, ``fallback`` its HTML without scripts."""

    def __init__(self, entry: Callable[[], Entry], fallback: str, lock=None, take_back=None):
        self.entry = entry
        self.fallback = fallback
        self.lock = lock
        self.take_back = take_back
        self.sheet = None

    def __repr__(self):
        return words.text(self.entry())

    def _repr_mimebundle_(self, **kwargs):
        entry = self.entry()
        if os.environ.get(BOOK):
            return {"text/html": html(entry, self.fallback)}
        if self.sheet is None:
            self.sheet = Sheet(entry, self.lock, self.take_back)
        bundle, metadata = self.sheet._repr_mimebundle_(**kwargs)
        return bundle | {"text/plain": words.text(entry)}, metadata

    def redraw(self) -> None:
        """Send the present entry to the browser, if it shows one."""
        if self.sheet is not None:
            self.sheet.entry = self.entry()


def html(entry: Entry, fallback: str) -> str:
    """An element that ``web/predictions.js`` makes work; ``fallback`` shows without scripts."""
    place = "-".join(["prediction", *re.findall(r"\w+", entry.get("name", "table"))])
    place += "-outcome" * (entry["part"] == "outcome")
    if entry["part"] == "table":
        entry = entry | {"entries": []}  # those of the reader's browser
    data = escape(json.dumps(entry))
    return f'<div class="prediction" id="{place}" data-prediction="{data}">{fallback}</div>'
