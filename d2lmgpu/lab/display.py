"""The lab's results as HTML: the table of runs, and how far the present one is."""

import base64
from html import escape

from d2lmgpu.figures.site import inlined
from d2lmgpu.figures.style import number
from d2lmgpu.lab.words import TIMING, table_texts
from d2lmgpu.lab.words import devices_note as devices_note
from d2lmgpu.lab.words import forecast as forecast
from d2lmgpu.lab.words import hint as hint
from d2lmgpu.lab.words import spread as spread


def progress(live):
    """How far a run is: a bar, the time left, the speed."""
    parts = []
    if live.epoch:
        of = f" of {live.num_epochs:g}" if live.num_epochs else ""
        parts.append(f"epoch {live.epoch}{of}")
    if live.speed:
        parts.append(f"{number(live.speed)} samples/s ({TIMING.get(live.sharing, '')})")
    if live.seconds_left is not None:
        parts.append(f"about {live.seconds_left:.0f} s left")
    value = "" if live.progress is None else f'value="{live.progress:.4f}"'
    bar = f'<progress max="1" {value} aria-label="Progress of the run"></progress>'
    return f'{bar} <span class="lab-said">{escape(", ".join(parts))}</span>'


def table(rows, files=None, baseline=None):
    """All runs, repeats taken together, without columns that would be empty; empty without any.

    ``files`` maps names to texts that can be downloaded beneath; ``baseline`` is the chosen row.
    """
    if not rows:
        return ""
    shown, lines, notes = table_texts(rows, baseline)
    head = "".join(f'<th scope="col">{name}</th>' for name in shown)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(line[name])}</td>' for name in shown)}</tr>" for line in lines
    )
    return (
        f"{inlined('lab/lab.css')}"
        '<div class="lab-rows" tabindex="0" role="region" aria-label="Table of runs">'
        "<table><caption>All runs: the median of the repeats, and from the least to the greatest."
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{' '.join(download(*file) for file in (files or {}).items())}</div>"
        f"{''.join(f'<p>{escape(note)}</p>' for note in notes)}"
    )


def download(name, text):
    """A link that saves ``text`` under ``name``; no server is asked."""
    data = base64.b64encode(text.encode()).decode()
    return f'<a download="{name}" href="data:text/plain;base64,{data}">Download {name}</a>'


def details(text):
    """The log and traceback of a run that failed, folded away."""
    summary = "<summary>What the run printed last</summary>"
    return f"<details>{summary}<pre>{escape(text)}</pre></details>" if text else ""
