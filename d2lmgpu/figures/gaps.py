"""Where the lanes of a timeline stand still: the longest gap is found, and marked with its time."""

from collections import namedtuple
from itertools import pairwise

from d2lmgpu.figures.checks import need

WAIT = "wait"  # what a lane does that does nothing
Gap = namedtuple("Gap", "length lane start")  # length and start in the unit of the lanes


def longest_gap(lanes: dict, lane: str | None = None) -> Gap | None:
    """The longest span that is called "wait", or pause between two spans of ``lane``, if any.

    lanes: name -> [(start, end, what)]. Raises FigureError for a ``lane`` that is not there.
    """
    need(lane is None or lane in lanes, "gap", lane, f"one of {', '.join(lanes)}")
    waits = [
        Gap(end - start, name, start)
        for name, spans in lanes.items()
        for start, end, what in spans
        if what == WAIT
    ]
    ordered = sorted(lanes[lane]) if lane else []
    pauses = [Gap(after[0] - before[1], lane, before[1]) for before, after in pairwise(ordered)]
    return max((gap for gap in waits + pauses if gap.length > 0), default=None)


def mark(axes, gap: Gap, height: float, ink: str, unit: str) -> None:
    """Hatch the gap at this height, with its time in ``unit`` above it or, at the top, below."""
    axes.barh(height, gap.length, 0.6, gap.start, color="none", hatch="////", edgecolor=ink)
    side, align = (-1, "bottom") if height else (1, "top")  # above the first lane is the title
    at = gap.start + gap.length / 2, height + 0.33 * side
    axes.text(*at, f"{gap.length:.3g} {unit}", ha="center", va=align)
