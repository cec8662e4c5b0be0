"""Small pictures as SVG text, for explorers: light enough that a page holds hundreds of them.

One element a line, on axes that stay where they are: so most lines of one picture are lines of the
others too, and an explorer stores them once. Ink and ground are the page's, dark or light.
"""

from html import escape
from math import cos, hypot, log2, pi, sin

from d2lmgpu.figures.axes import Axes, curve, dot, text
from d2lmgpu.figures.checks import is_curve, is_series, need
from d2lmgpu.figures.style import BLUE, GRAY, GREEN, TINT, VERMILLION, number
from d2lmgpu.machine.checks import is_list, is_real, is_whole

MOST_DEVICES = 1024
MODELLED = f'stroke="{BLUE}" stroke-width="2" stroke-dasharray="6 4"'


def picture(width: int, height: int, alt: str, lines) -> str:
    """An SVG element around `lines`, with its text alternative."""
    need(isinstance(alt, str), "alt", alt, "what the picture shows as a text")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f"<svg {size}", f'role="img" aria-label="{escape(alt)}">', *lines, "</svg>"])


def scaling(measured: dict, modelled: dict, at: int, alt: str) -> str:
    """Speedup over devices, both {devices: speedup}: measured solid, modelled dashed.

    `at` is the number of devices that is marked. Both axes are logarithmic, from 1 to 1,024 devices
    from a speedup of 1/16 to 1,024; the ideal is drawn dotted. Raises FigureError for other
    numbers of devices, and for speedups that are not positive.
    """

    def is_k(k):
        return is_real(k, 1) and k <= MOST_DEVICES

    for name, points in (("measured", measured), ("modelled", modelled)):
        good = is_curve(points, is_k, lambda speedup: is_real(speedup) and speedup > 0)
        need(good, name, points, f"{{devices from 1 to {MOST_DEVICES}: speedup above 0}}")
    need(is_k(at), "at", at, f"a number of devices from 1 to {MOST_DEVICES}")
    axes = Axes(left=40, right=400, top=12, floor=226)
    low, high = -4, log2(MOST_DEVICES)

    def place(point):
        k, speedup = point
        return axes.at(log2(k) / high, (max(log2(speedup), low) - low) / (high - low))

    ends = place((1, 1)), place((MOST_DEVICES, MOST_DEVICES))
    lines = [axes.lines(), curve(ends, f'stroke="{GRAY}" stroke-dasharray="1 3"')]
    for k in (1, 4, 16, 64, 256, 1024):
        lines += axes.ticks(place((k, k)), k, k)
    lines += [
        text((axes.left + axes.right) / 2, axes.floor + 30, "GPUs", "middle"),
        text(axes.left + 8, axes.top + 6, "speedup"),
        text(axes.left + 8, axes.top + 20, "- - modelled,  — measured,  ··· ideal"),
        curve(map(place, sorted(modelled.items())), MODELLED),
    ]
    if measured:
        look = f'stroke="{VERMILLION}" stroke-width="2"'
        lines.append(curve(map(place, sorted(measured.items())), look))
    marked = {at: modelled[at]} if at in modelled else {}
    for kind, points, color in (("modelled", marked, BLUE), ("measured", measured, VERMILLION)):
        for k, value in points.items():
            told = f"{k:,} GPUs, {kind}: {number(value)}"
            lines.append(dot(place((k, value)), f'r="4" fill="{color}"', told))
    return picture(410, 262, alt, lines)


def shares(modelled: dict, chosen: float, best: float, alt: str) -> str:
    """Step time over the fast device's part of the batch, {part: time}, modelled and so dashed.

    Parts go from 0 to 1; times are relative to the fast device alone and are drawn up to 4. The
    `chosen` part and the `best` one, both in `modelled`, are marked. Raises FigureError for parts
    and times outside of these.
    """
    good = is_curve(modelled, lambda part: is_real(part, 0) and part <= 1, lambda t: is_real(t, 0))
    need(good, "modelled", modelled, "{part from 0 to 1: time from 0 up}")
    for name, part in (("chosen", chosen), ("best", best)):
        need(is_real(part) and part in modelled, name, part, "a part that was modelled")
    axes = Axes(left=40, right=390, top=12, floor=226)

    def place(part):
        return axes.at(part, min(modelled[part] / 4, 1))

    middle = (axes.left + axes.right) / 2
    lines = [
        axes.lines(),
        text(axes.left + 8, axes.top + 6, "- - step time, modelled (fast one alone: 1)"),
        text(middle, axes.floor + 30, "part of the batch for the fast device", "middle"),
        curve(map(place, sorted(modelled)), MODELLED),
    ]
    for tick in range(5):
        lines += axes.ticks(axes.at(tick / 4, tick / 4), f"{25 * tick} %", tick)
    for name, part, look in (
        ("best", best, f'r="8" fill="none" stroke="{VERMILLION}" stroke-width="2"'),
        ("chosen", chosen, f'r="4" fill="{BLUE}"'),
    ):
        lines.append(dot(place(part), look, f"{name}: {part:.0%}, {modelled[part]:.2f}"))
    return picture(410, 262, alt, lines)


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
    for node, ((x, y), row) in enumerate(zip(places, held, strict=True)):
        lines.append(text(x, y - 11, f"device {node}" if node < k else "host", "middle"))
        for part, count in enumerate(row):
            left = x + (part - len(row) / 2) * cell
            box = f'x="{left:.0f}" y="{y - 7:.0f}" width="{cell}" height="14"'
            look = f'fill="{BLUE}" fill-opacity="{TINT * count / k:.2f}" stroke="currentColor"'
            lines.append(f"<rect {box} {look}/>")
            lines.append(text(left + cell / 2, y + 4, count, "middle"))
    return picture(width, height, alt, lines)


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


def overlap(forward: float, backward: float, sends, alt: str) -> str:
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
    left, right = 62, 400

    def across(seconds):
        return left + seconds / end * (right - left)

    def box(start, stop, y, color):
        width = across(stop) - across(start)
        shape = f'<rect x="{across(start):.1f}" y="{y}" width="{width:.1f}" height="26"'
        look = f'fill="{color}" fill-opacity="{TINT}" stroke="currentColor" stroke-dasharray="3 2"'
        return f"{shape} {look}/>"

    return picture(410, 88, alt, [
        text(left - 6, 22, "GPU", "end"),
        text(left - 6, 57, "network", "end"),
        box(0, forward, 5, BLUE),
        box(forward, forward + backward, 5, GREEN),
        *(box(start, stop, 40, VERMILLION) for start, stop in sends),
        text(left, 82, 0),
        text(right, 82, f"{number(1000 * end)} ms, modelled", "end"),
        text(across(0) + 4, 22, "forward"),
        text(across(forward) + 4, 22, "backward"),
    ])  # fmt: skip
