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

import json
from html import escape
from itertools import product

MOST_BYTES = 2**20  # of one explorer: it is part of its page

STYLE = """<style>
.explore { overflow-wrap: anywhere }
.explore-controls { display: flex; flex-wrap: wrap; gap: .5em 1em; align-items: end }
.explore-controls label { max-width: 100% }
.explore-controls select, .explore-controls input { display: block; max-width: 100% }
.explore svg { display: block; max-width: 100%; height: auto }
.explore [hidden] { display: none }
@media (prefers-reduced-motion: reduce) { .explore .moves { display: none } }
</style>"""
SCRIPT = """<script>(() => {
const root = document.currentScript.parentElement;
const { lines, answers } = JSON.parse(root.querySelector('script').textContent);
const choices = [...root.querySelectorAll('select')];
const walk = root.querySelector('.explore-steps');
const [step, back, next] = walk.querySelectorAll('input, button');
const show = event => {
  const steps = answers[choices.reduce((at, c) => at * c.length + c.selectedIndex, 0)];
  const last = steps.length - 1;
  if (event && event.target.localName === 'select') step.value = 0;
  step.max = last;
  const now = Number(step.value);
  walk.querySelector('.explore-at').textContent = `${now} of ${last}`;
  [back.disabled, next.disabled] = [now === 0, now === last];
  const html = steps[now].map(line => lines[line]).join('\\n');
  root.querySelector('.explore-answer').innerHTML = html;
};
const walkBy = distance => () => { step.value = Number(step.value) + distance; show(); };
back.addEventListener('click', walkBy(-1));
next.addEventListener('click', walkBy(1));
root.addEventListener('input', show);
show();
})();</script>"""


class ExploreError(ValueError):
    """An explorer cannot be made of this: the message says what was given and what is allowed."""


class Explorer:
    """Choices, and what `answer` says to each: see the module for an example.

    answer: called with one value a control; returns HTML, or a list of at least one, its steps.
    controls: label -> its values, as a list (each reads as it prints) or as {text: value}.
    start: label -> the text of the value that is chosen at first; elsewhere it is the first one.

    Raises ExploreError for a control without values, for a start that is none of them, for answers
    of another kind, and for more than a page should carry (MOST_BYTES).
    """

    def __init__(self, answer, controls: dict, start: dict | None = None):
        controls = {label: _texts(label, values) for label, values in controls.items()}
        start = {label: next(iter(texts)) for label, texts in controls.items()} | (start or {})
        for label, text in start.items():
            if text not in controls.get(label, ()):
                raise ExploreError(
                    f"start={{{label!r}: {text!r}}}: the controls are "
                    + "; ".join(f"{name}: {', '.join(texts)}" for name, texts in controls.items())
                )
        answers = {}
        for texts in product(*controls.values()):
            values = tuple(of[text] for of, text in zip(controls.values(), texts, strict=True))
            answers[texts] = _steps(answer(*values), values)
        self.html = _page(controls, start, answers)
        if len(self.html.encode()) > MOST_BYTES:
            raise ExploreError(
                f"This explorer has {len(self.html.encode()):,} bytes for {len(answers):,} choices "
                f"and may have {MOST_BYTES:,}: offer fewer choices, or shorter answers."
            )

    def _repr_html_(self):
        return self.html


def select(label: str, values, start="") -> str:
    """A labelled choice: `values` maps what is submitted to what is read; `start` is chosen."""
    inner = "".join(
        f'<option value="{escape(v)}"{" selected" if v == start else ""}>{escape(t)}</option>'
        for v, t in values.items()
    )
    field = f'<select autocomplete="off">{inner}</select>'  # a reload starts afresh
    return f"<label>{escape(label)}{field}</label>"


def _texts(label, values) -> dict:
    """What is read -> the value."""
    texts = dict(values if isinstance(values, dict) else [(_text(v), v) for v in values])
    if not texts:
        raise ExploreError(f"The control {label!r} has no values; give at least one.")
    return texts


def _text(value) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _steps(answer, values) -> list[str]:
    steps = [_html(step) for step in (answer if isinstance(answer, list) else [answer])]
    if not steps or None in steps:
        raise ExploreError(
            f"The answer to {values} is {answer!r}; it must be HTML, an object that shows itself "
            "as HTML, or a list of at least one of them."
        )
    return steps


def _html(answer) -> str | None:
    if isinstance(answer, str):
        return answer
    return answer._repr_html_() if hasattr(answer, "_repr_html_") else None


def _page(controls, start, answers) -> str:
    """Lines that many answers share are in the page once: an answer is a list of their numbers."""
    lines = {}
    numbers = [
        [[lines.setdefault(line, len(lines)) for line in step.split("\n")] for step in steps]
        for steps in answers.values()
    ]
    data = json.dumps({"lines": list(lines), "answers": numbers}, separators=(",", ":"))
    data = data.replace("</", "<\\/").replace("<!--", "\\u003c!--")  # or it might end, or not end
    choices = "".join(
        select(label, {text: text for text in texts}, start[label])
        for label, texts in controls.items()
    )
    first = answers[tuple(start[label] for label in controls)][0]
    hidden = "" if any(len(steps) > 1 for steps in answers.values()) else "hidden"
    return (
        f'<div class="explore"><script type="application/json">{data}</script>{STYLE}'
        f'<div class="explore-controls">{choices}</div>'
        f'<div class="explore-controls explore-steps" {hidden}>'
        '<label>Step <span class="explore-at"></span>'
        '<input type="range" min="0" max="0" value="0"></label>'
        '<button type="button">Back</button><button type="button">Next</button></div>'
        f'<div class="explore-answer" role="status">{first}</div>{SCRIPT}</div>'
    )
