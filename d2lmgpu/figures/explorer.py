"""Explorers: a few choices and the answer to each, in a notebook and in a built page alike.

All answers are made here, in Python, and put into the page; a few lines of script look up the one
that is asked for. So there is no formula in the page that could differ from the chapter's, no
kernel is needed, and no host is asked. Without scripts the answer to the start shows.

    def answer(batch_size, k):
        seconds = step(work, machine, k, batch_size).seconds
        return f"<p>A step takes {1000 * seconds:.1f} ms, modelled.</p>"

    Explorer(answer, {"Batch size": [64, 256], "Devices": {"one": 1, "two": 2}})

as the last line of a cell. The answer is called with one value of each control, in their order. It
returns HTML or something that shows itself as HTML, as a `charts` picture does; or a list of these:
then the reader goes through them step by step. A picture needs a text alternative.
"""

from html import escape
from itertools import product

from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.site import embedded, inlined
from d2lmgpu.machine.checks import Need

MOST_BYTES = 2**20  # of one explorer: it is part of its page


class ExploreError(FigureError):
    """An explorer cannot be made of this: the message says what was given and what is allowed."""


need = Need(ExploreError)


class Explorer:
    """Choices, and what `answer` says to each: see the module for an example.

    answer: called with one value a control; returns HTML, or a list of at least one, its steps.
    controls: label -> its values, as a list (each reads as it prints) or as {text: value}.
    start: label -> the text of the value that is chosen at first; elsewhere it is the first one.
    absent: HTML that shows where `answer` returns None. A choice without an answer takes the
        controls after it along to one that has an answer; only if there is none does it show.

    Raises ExploreError for controls without values or with two that read alike, for a start that
    is none of them or has no answer, for answers of another kind, and for more than a page should
    carry (MOST_BYTES).
    """

    def __init__(self, answer, controls: dict, start: dict | None = None, absent: str = ""):
        need(callable(answer), "answer", answer, "a function of one value a control")
        good = isinstance(controls, dict) and controls
        need(good, "controls", controls, "{label: values}, at least one")
        need(isinstance(start, dict | None), "start", start, "{label: text}")
        need(isinstance(absent, str), "absent", absent, "HTML")
        controls = {label: _texts(label, values) for label, values in controls.items()}
        start = {label: next(iter(texts)) for label, texts in controls.items()} | (start or {})
        for label, text in start.items():
            offered = [f"{name}: {', '.join(texts)}" for name, texts in controls.items()]
            need(text in list(controls.get(label, ())), f"start[{label!r}]", text,
                 f"what a control offers: {'; '.join(offered)}")  # fmt: skip
        answers = {}
        for texts in product(*controls.values()):
            values = tuple(of[text] for of, text in zip(controls.values(), texts, strict=True))
            answers[texts] = _steps(answer(*values), values, absent)
        self.words = f"Choices of {', '.join(controls)}: run this cell, and they are here."
        self.html = _page(controls, start, answers, absent)
        size = len(self.html.encode())
        need(size <= MOST_BYTES, f"The size with {len(answers):,} choices", size,
             f"fewer choices, or shorter answers: at most {MOST_BYTES:,} bytes")  # fmt: skip

    def __repr__(self):
        return self.words

    def _repr_html_(self):
        return inlined("figures/explorer.css") + self.html + inlined("figures/explorer.js")


def _texts(label, values) -> dict:
    """What is read -> the value."""
    listed = isinstance(values, dict | list | tuple | range)
    need(isinstance(label, str), "The label of a control", label, "a text")
    need(listed and len(values), f"The control {label!r}", values,
         "a list of values or {text: value}, at least one")  # fmt: skip
    texts = list(values) if isinstance(values, dict) else [_text(value) for value in values]
    good = all(isinstance(text, str) for text in texts) and len({*texts}) == len(texts)
    need(good, f"The control {label!r}", texts, "each value a text of its own, which is read")
    return dict(zip(texts, values.values() if isinstance(values, dict) else values))


def _text(value) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _steps(answer, values, absent) -> list[str]:
    if answer is None and absent:
        return []
    steps = [_html(step) for step in (answer if isinstance(answer, list) else [answer])]
    need(steps and None not in steps, f"The answer to {values}", answer,
         "HTML, what shows itself as HTML, or a list of at least one of them")  # fmt: skip
    return steps


def _html(answer) -> str | None:
    if isinstance(answer, str):
        return answer
    return answer._repr_html_() if hasattr(answer, "_repr_html_") else None


def _page(controls, start, answers, absent) -> str:
    """Lines that many answers share are in the page once: an answer is a list of their numbers."""
    first = answers[tuple(start[label] for label in controls)]
    need(first, "start, which has no answer,", start, "a choice that has one")
    lines = {}

    def numbers(html):
        return [lines.setdefault(line, len(lines)) for line in html.split("\n")]

    data = {
        "answers": [[numbers(step) for step in steps] for steps in answers.values()],
        "absent": numbers(absent),
        "lines": list(lines),
    }
    choices = "".join(_select(label, texts, start[label]) for label, texts in controls.items())
    hidden = "" if any(len(steps) > 1 for steps in answers.values()) else "hidden"
    return (
        f'<div class="explore"><script type="application/json">{embedded(data)}</script>'
        f'<div class="explore-controls">{choices}</div>'
        f'<div class="explore-controls explore-steps" {hidden}>'
        '<label>Step <span class="explore-at"></span>'
        '<input type="range" min="0" max="0" value="0"></label>'
        '<button type="button">Back</button><button type="button">Next</button></div>'
        f'<div class="explore-answer" role="status">{first[0]}</div></div>'
    )


def _select(label, texts, start) -> str:
    """A labelled choice among `texts`, of which `start` is chosen."""
    options = "".join(
        f"<option{' selected' if text == start else ''}>{escape(text)}</option>" for text in texts
    )
    field = f'<select autocomplete="off">{options}</select>'  # a reload starts afresh
    return f"<label>{escape(label)}{field}</label>"
