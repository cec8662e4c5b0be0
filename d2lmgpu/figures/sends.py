"""How devices exchange, as small pictures (see `svg`): rounds of messages, and sends in a step."""

from math import cos, hypot, pi, sin

from d2lmgpu.figures.axes import text
from d2lmgpu.figures.checks import is_series, need
from d2lmgpu.figures.style import BLUE, GREEN, TINT, VERMILLION, number
from d2lmgpu.figures.svg import WIDTH, picture
from d2lmgpu.machine.checks import is_list, is_real, is_whole


def messages(held, k: int, sends, alt: str) -> str:
    """Nodes with what they hold, and the messages that have just arrived there.

    held: for each node, and each part that it holds, from how many of the k devices it is a sum:
    the more, the fuller its colour. A node after the k devices is the host, in the middle. sends:
    pairs (source, target). Raises FigureError for fewer nodes than devices, for counts that are not
    from 0 to k and for messages between others than two of the nodes.
    """
    need(is_whole(k, 1), "k", k, "a number of devices from 1 up")
    good = is_series(held, lambda row: is_series(row, lambda count: is_whole(count, 0, k)))
    need(good and len(held) in (k, k + 1), "held", held,
         f"counts from 0 to {k} for each of {k} devices and perhaps a host")  # fmt: skip

    def is_pair(pair):
        nodes = is_series(pair, lambda node: is_whole(node, 0, len(held) - 1))
        return nodes and len(pair) == 2 and pair[0] != pair[1]

    need(is_list(sends) and all(map(is_pair, sends)), "sends", sends,
         f"pairs of two nodes from 0 to {len(held) - 1}")  # fmt: skip
    width, height, radius, cell = 400, 340, 142, 13
    middle = width / 2, height / 2 + 5
    places = [
        (middle[0] + radius * sin(2 * pi * i / k), middle[1] - radius * cos(2 * pi * i / k))
        for i in range(k)
    ] + [middle] * (len(held) - k)
    lines = [line for pair in sends for line in _message(*(places[node] for node in pair))]
    names = [f"device {i}" for i in range(k)] + ["host"]
    values = []
    for name, (x, y), row in zip(names, places, held):
        lines.append(text(x, y - 11, name, "middle"))
        half = len(row) * cell / 2
        values.append((x - half, x + half, y, name, f"sums of {', '.join(map(str, row))}"))
        for part, count in enumerate(row):
            left = x + (part - len(row) / 2) * cell
            box = f'x="{left:.0f}" y="{y - 7:.0f}" width="{cell}" height="14"'
            look = f'fill="{BLUE}" fill-opacity="{TINT * count / k:.2f}" stroke="currentColor"'
            lines.append(f"<rect {box} {look}/>")
            lines.append(text(left + cell / 2, y + 4, count, "middle"))
    return picture(width, height, alt, lines, {"": values})


def _message(source, target):
    """An arrow, and a dot that runs along it once; those of both directions lie side by side."""
    (x, y), (dx, dy) = source, (target[0] - source[0], target[1] - source[1])
    length = hypot(dx, dy)
    along, aside = (dx / length, dy / length), (-dy / length, dx / length)

    def at(forward, side):
        return ",".join(
            f"{o + forward * a + (4 + side) * b:.0f}"
            for o, a, b in zip((x, y), along, aside, strict=True)
        )

    start, end = 0.2 * length, 0.8 * length
    shaft = f"M{at(start, 0)}L{at(end, 0)}"
    yield (
        f'<path d="{shaft}M{at(end - 7, -4)}L{at(end, 0)}L{at(end - 7, 4)}" fill="none" '
        f'stroke="{VERMILLION}" stroke-width="2"/>'
    )
    yield f'<circle class="moves" r="5" fill="{VERMILLION}">'
    yield f'<animateMotion dur="0.8s" path="{shaft}" fill="freeze"/></circle>'


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
        said = f"{name}, {number(1000 * start)} to {number(1000 * stop)} ms"
        return across(start), across(stop), y + 13, said, ""

    values = {
        "forward": [span(0, forward, 5, "GPU")],
        "backward": [span(forward, forward + backward, 5, "GPU")],
        "sends": [span(start, stop, 40, "network") for start, stop in sends],
    }
    return picture(WIDTH, 88, alt, [
        text(left - 6, 22, "GPU", "end"),
        text(left - 6, 57, "network", "end"),
        *lane(BLUE, [box(0, forward, 5)]),
        *lane(GREEN, [box(forward, forward + backward, 5)]),
        *lane(VERMILLION, [box(start, stop, 40) for start, stop in sends]),
        text(left, 82, 0),
        text(right, 82, f"{number(1000 * end)} ms, modelled", "end"),
        text(across(0) + 4, 22, "forward"),
        text(across(forward) + 4, 22, "backward"),
    ], values)  # fmt: skip
