"""Explorers: a few choices and the answer to each, in a notebook and in a built page alike.

All answers are made here, in Python, and put into the page; a few lines of script look up the one
that is asked for. So there is no formula in the page that could differ from the chapter's, no
kernel is needed, and no host is asked. Without scripts the answer to the start shows.

    def answer(batch_size, k):
        seconds = step(work, machine, k, batch_size).seconds
        return f"<p>A step takes {1000 * seconds:.1f} ms, modelled.</p>"

    Explorer(answer, {"Batch size": [64, 256], "Devices": {"one": 1, "two": 2}})

as the last line of a cell. The answer is called with one value of each control, in their order. It
returns HTML or something that shows itself as HTML, as a `charts` picture does. A picture needs a
text alternative. In a built page the choices are in the address, which can be sent.
"""

from html import escape
from itertools import product

from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.site import embedded, inlined
from d2lmgpu.machine.checks import Need, is_list

MOST_BYTES = 2**20  # of one explorer: it is part of its page


class ExploreError(FigureError):
    """An explorer cannot be made of this: the message says what was given and what is allowed."""


need = Need(ExploreError)


class Explorer:
    """Choices, and what `answer` says to each: see the module for an example.

    answer: called with one value a control; returns HTML.
    controls: label -> its values, as a list (each reads as it prints) or as {text: value}.
    start: label -> the text of the value that is chosen at first; elsewhere it is the first one.
    sliders: labels of the controls whose values are in an order; those are moved, not listed.
    absent: HTML that shows where `answer` returns None. A choice without an answer takes the
        controls after it along to one that has an answer; only if there is none does it show.

    Raises ExploreError for controls without values or with two that read alike, for a start that
    is none of them or has no answer, for a slider that is no control, for answers of another kind,
    and for more than a page should carry (MOST_BYTES).
    """

    def __init__(
        self, answer, controls: dict, start: dict | None = None, absent: str = "", sliders=()
    ):
        need(callable(answer), "answer", answer, "a function of one value a control")
        good = isinstance(controls, dict) and controls
        need(good, "controls", controls, "{label: values}, at least one")
        need(isinstance(start, dict | None), "start", start, "{label: text}")
        need(isinstance(absent, str), "absent", absent, "HTML")
        controls = {label: _texts(label, values) for label, values in controls.items()}
        start = {label: next(iter(texts)) for label, texts in controls.items()} | (start or {})
        for label, text in start.items():
            offered = [f"{name}: {', '.join(texts)}" for name, texts in controls.items()]
            need(
                text in list(controls.get(label, ())),
                f"start[{label!r}]",
                text,
                f"what a control offers: {'; '.join(offered)}",
            )
        good = is_list(sliders) and all(label in list(controls) for label in sliders)
        need(good, "sliders", sliders, f"labels of these controls: {', '.join(controls)}")
        answers = {}
        for texts in product(*controls.values()):
            values = tuple(of[text] for of, text in zip(controls.values(), texts, strict=True))
            answers[texts] = _html(answer(*values), values, absent)
        self.words = f"Choices of {', '.join(controls)}: run this cell, and they are here."
        self.html = _page(controls, start, answers, absent, sliders)
        size = len(self.html.encode())
        need(
            size <= MOST_BYTES,
            f"The size with {len(answers):,} choices",
            size,
            f"fewer choices, or shorter answers: at most {MOST_BYTES:,} bytes",
        )

    def __repr__(self):
        return self.words

    def _repr_html_(self):
        scripts = inlined("figures/address.js", "figures/explorer.js")
        return inlined("figures/explorer.css") + self.html + scripts


def _texts(label, values) -> dict:
    """What is read -> the value."""
    listed = isinstance(values, dict | list | tuple | range)
    need(isinstance(label, str), "The label of a control", label, "a text")
    need(
        listed and len(values),
        f"The control {label!r}",
        values,
        "a list of values or {text: value}, at least one",
    )
    texts = list(values) if isinstance(values, dict) else [_text(value) for value in values]
    good = all(isinstance(text, str) for text in texts) and len({*texts}) == len(texts)
    need(good, f"The control {label!r}", texts, "each value a text of its own, which is read")
    return dict(zip(texts, values.values() if isinstance(values, dict) else values))


def _text(value) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _html(answer, values, absent) -> str | None:
    if answer is None and absent:
        return None
    need(
        isinstance(answer, str) or hasattr(answer, "_repr_html_"),
        f"The answer to {values}",
        answer,
        "HTML, or what shows itself as HTML",
    )
    return answer if isinstance(answer, str) else answer._repr_html_()


def _page(controls, start, answers, absent, sliders) -> str:
    """Lines that many answers share are in the page once: an answer is a list of their numbers."""
    first = answers[tuple(start[label] for label in controls)]
    need(first is not None, "start, which has no answer,", start, "a choice that has one")
    lines = {}

    def numbers(html):
        return [lines.setdefault(line, len(lines)) for line in html.split("\n")]

    data = {
        "answers": [None if html is None else numbers(html) for html in answers.values()],
        "absent": numbers(absent),
        "lines": list(lines),
    }
    choices = "".join(
        (_slider if label in sliders else _select)(label, list(texts), start[label])
        for label, texts in controls.items()
    )
    return (
        f'<div class="explore"><script type="application/json">{embedded(data)}</script>'
        f'<div class="explore-controls">{choices}</div>'
        f'<div class="explore-answer" role="status">{first}</div></div>'
    )


def _select(label, texts, start) -> str:
    """A labelled choice among `texts`, of which `start` is chosen."""
    options = "".join(
        f"<option{' selected' if text == start else ''}>{escape(text)}</option>" for text in texts
    )
    field = f'<select autocomplete="off">{options}</select>'  # a reload starts afresh
    return f"<label>{escape(label)}{field}</label>"


def _slider(label, texts, start) -> str:
    """The same as a slider, with the text that is chosen beside the label."""
    place = f'min="0" max="{len(texts) - 1}" value="{texts.index(start)}" autocomplete="off"'
    attributes = f'data-texts="{escape(embedded(texts))}" aria-valuetext="{escape(start)}"'
    field = f'<input type="range" {place} {attributes}>'
    return f"<label>{escape(label)} <span>{escape(start)}</span>{field}</label>"
