"""The answer as one page that asks no other host: its words, all ranks' timelines, and a trace.

The trace is in the page, behind a link that saves it: Perfetto (ui.perfetto.dev) and Chrome's
about://tracing open it.
"""

import base64
import json
from html import escape
from pathlib import Path

from d2lmgpu.figures.charts import timeline

DRAWN = 3  # steps
STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#222, #ddd) }
body { color: var(--ink); background: Canvas; font: 16px/1.5 system-ui, sans-serif;
  margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
svg { max-width: 100%; height: auto }
"""


def spans(run) -> list[tuple]:
    """(rank, step, part, start, end) of the last steps of a Summary, in seconds."""
    return [(rank["rank"], *span) for rank in run.ranks for span in rank["spans"]]


def chrome_trace(run) -> dict:
    """Those as Chrome's trace events, in microseconds from the first one on."""
    recent = spans(run)
    zero = min((start for *_, start, _ in recent), default=0.0)
    names = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": rank["rank"],
            "tid": 0,
            "args": {"name": f"rank {rank['rank']}"},
        }
        for rank in run.ranks
    ]
    return {
        "traceEvents": names
        + [
            {
                "ph": "X",
                "name": part,
                "cat": "step",
                "pid": rank,
                "tid": 0,
                "ts": 1e6 * (start - zero),
                "dur": 1e6 * (end - start),
                "args": {"step": step},
            }
            for rank, step, part, start, end in recent
        ]
    }


def timelines(run) -> str:
    """A chart of the last ``DRAWN`` steps that are told, as HTML; empty where a rank told none."""
    recent = spans(run)
    newest = max((step for _, step, *_ in recent), default=0)
    drawn = [span for span in recent if newest - DRAWN < span[1] <= newest]
    zero = min((start for *_, start, _ in drawn), default=0.0)
    name = "device" if run.in_threads else "rank"
    lanes = {f"{name} {rank['rank']}": [] for rank in run.ranks}
    for rank, _, part, start, end in drawn:
        lanes[f"{name} {rank}"].append((1000 * (start - zero), 1000 * (end - zero), part))
    if not all(lanes.values()):
        return ""
    return timeline(lanes, f"The last steps of each {name}", "measured")._repr_html_()


def page(answer) -> str:
    """HTML of an Answer."""
    trace = base64.b64encode(json.dumps(chrome_trace(answer.run)).encode()).decode()
    title = escape(f"Why so slow? {Path(answer.script).name}")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<pre>{escape(str(answer))}</pre>
<h2>Timelines</h2>
{timelines(answer.run)}
<p><a download="trace.json" href="data:application/json;base64,{trace}">Save the trace</a>
of all ranks' last steps, for Perfetto. In it a part lasts as long as the clock says, also while
other programs had the core.</p>
</body></html>
"""
