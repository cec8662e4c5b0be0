"""How a device's sends lie in its step, as a small picture (see `svg`)."""

from d2lmgpu.figures.axes import text
from d2lmgpu.figures.checks import is_series, need
from d2lmgpu.figures.style import BLUE, GREEN, TINT, VERMILION, number
from d2lmgpu.figures.svg import WIDTH, picture
from d2lmgpu.machine.checks import is_real


def overlapping(forward: float, backward: float, sends, alt: str) -> str:
    """A modelled step, dashed: a device computes, and beside it the network sends.

    forward, backward: how long these passes take; sends: [(start, end)] of the buckets, from the
    start of the step; all in seconds. Raises FigureError for negative times and without any.
    """

    def is_time(seconds):
        return is_real(seconds, 0)

    for name, seconds in (("forward", forward), ("backward", backward)):
        need(is_time(seconds), name, seconds, "seconds from 0 up")
    good = is_series(sends, lambda send: is_series(send, is_time) and len(send) == 2)
    end = good and max(forward + backward, sends[-1][1])
    need(end, "sends", sends, "a bucket at least, (start, end) in a step")
    left, right = 58, WIDTH - 10

    def across(seconds):
        return left + seconds / end * (right - left)

    def box(start, stop, y):
        width = across(stop) - across(start)
        return f'<rect x="{across(start):.1f}" y="{y}" width="{width:.1f}" height="26"/>'

    def lane(color, boxes):
        look = f'fill="{color}" fill-opacity="{TINT}" stroke="currentColor" stroke-dasharray="3 2"'
        return [f"<g {look}>", *boxes, "</g>"]

    def span(start, stop, y, name):
        words = f"{name}, {number(1000 * start)} to {number(1000 * stop)} ms"
        return across(start), across(stop), y + 13, words, ""

    values = {
        "forward": [span(0, forward, 5, "GPU")],
        "backward": [span(forward, forward + backward, 5, "GPU")],
        "sends": [span(start, stop, 40, "network") for start, stop in sends],
    }
    return picture(
        WIDTH,
        88,
        alt,
        [
            text(left - 6, 22, "GPU", "end"),
            text(left - 6, 57, "network", "end"),
            *lane(BLUE, [box(0, forward, 5)]),
            *lane(GREEN, [box(forward, forward + backward, 5)]),
            *lane(VERMILION, [box(start, stop, 40) for start, stop in sends]),
            text(left, 82, 0),
            text(right, 82, f"{number(1000 * end)} ms, modelled", "end"),
            text(across(0) + 4, 22, "forward"),
            text(across(forward) + 4, 22, "backward"),
        ],
        values,
    )
