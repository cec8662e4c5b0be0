"""Small pictures as SVG text, for explorers: light enough that a page holds hundreds of them.

One element a line, on axes that stay where they are: so most lines of one picture are lines of the
others too, and an explorer stores them once. Colours follow the page, dark or light.
"""

from html import escape
from math import cos, hypot, log2, pi, sin

from d2lmgpu.charts import DEVICE_COLORS, INK

TEXT = 'font-size="11" fill="currentColor"'
BLUE, ORANGE = DEVICE_COLORS[:2]
MOST_DEVICES = 1024


def picture(width: int, height: int, alt: str, lines) -> str:
    """An SVG element around `lines`, with its text alternative."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f"<svg {size}", f'role="img" aria-label="{escape(alt)}">', *lines, "</svg>"])


def number(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def scaling(measured: dict, modelled: dict, at: int, alt: str) -> str:
    """Speedup over devices, both {devices: speedup}: measured solid, modelled dashed.

    `at` is the number of devices that is marked. Both axes are logarithmic, from 1 to 1,024 devices
    from a speedup of 1/16 to 1,024; the ideal is drawn dotted.
    """
    left, right, top, floor = 40, 400, 12, 226
    low, high = -4, log2(MOST_DEVICES)

    def place(k, speedup):
        across = log2(k) / high
        up = (max(log2(speedup), low) - low) / (high - low)
        return f"{left + across * (right - left):.0f},{floor - up * (floor - top):.0f}"

    def path(points, how):
        line = " ".join(place(k, value) for k, value in sorted(points.items()))
        return f'<polyline points="{line}" fill="none" {how}/>'

    lines = [
        f'<path d="M{left},{top}V{floor}H{right}" fill="none" stroke="currentColor"/>',
        path({1: 1, MOST_DEVICES: MOST_DEVICES}, 'stroke="gray" stroke-dasharray="1 3"'),
    ]
    for k in (1, 4, 16, 64, 256, 1024):
        x, y = place(k, k).split(",")
        lines.append(f'<text x="{x}" y="{floor + 15}" text-anchor="middle" {TEXT}>{k}</text>')
        lines.append(f'<text x="{left - 5}" y="{y}" text-anchor="end" {TEXT}>{k}</text>')
    lines += [
        f'<text x="{(left + right) / 2}" y="{floor + 30}" text-anchor="middle" {TEXT}>GPUs</text>',
        f'<text x="{left + 8}" y="{top + 6}" {TEXT}>speedup</text>',
        f'<text x="{left + 8}" y="{top + 20}" {TEXT}>- - modelled,  — measured,  ··· ideal</text>',
        path(modelled, f'stroke="{BLUE}" stroke-width="2" stroke-dasharray="6 4"'),
    ]
    if measured:
        lines.append(path(measured, f'stroke="{ORANGE}" stroke-width="2"'))
    for kind, points, color in (("modelled", {at: modelled.get(at)}, BLUE),
                                ("measured", measured, ORANGE)):  # fmt: skip
        for k, value in points.items():
            if value is not None:
                x, y = place(k, value).split(",")
                told = f"{k:,} GPUs, {kind}: {number(value)}"
                lines.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{color}">')
                lines.append(f"<title>{told}</title></circle>")
    return picture(410, 262, alt, lines)


def messages(held, k: int, sends, alt: str) -> str:
    """Nodes with what they hold, and the messages that have just arrived there.

    held: for each node, and each part that it holds, from how many of the k devices it is a sum:
    the more, the darker. A node after the k devices is the host, in the middle. sends: pairs
    (source, target).
    """
    width, height, radius, cell = 400, 340, 142, 13
    middle = width / 2, height / 2 + 5
    places = [
        (middle[0] + radius * sin(2 * pi * i / k), middle[1] - radius * cos(2 * pi * i / k))
        for i in range(k)
    ] + [middle] * (len(held) - k)
    lines = [line for pair in sends for line in _message(*(places[node] for node in pair))]
    for node, ((x, y), row) in enumerate(zip(places, held, strict=True)):
        name = f"device {node}" if node < k else "host"
        lines.append(
            f'<text x="{x:.0f}" y="{y - 11:.0f}" text-anchor="middle" {TEXT}>{name}</text>'
        )
        for part, count in enumerate(row):
            left = x + (part - len(row) / 2) * cell
            box = f'x="{left:.0f}" y="{y - 7:.0f}" width="{cell}" height="14"'
            lines.append(f'<rect {box} fill="white" stroke="{INK}"/>')
            lines.append(f'<rect {box} fill="{BLUE}" opacity="{0.6 * count / k:.2f}"/>')
            text = f'x="{left + cell / 2:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="11"'
            lines.append(f'<text {text} fill="{INK}">{count}</text>')
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
        f'stroke="{ORANGE}" stroke-width="2"/>'
    )
    yield f'<circle class="moves" r="5" fill="{ORANGE}">'
    yield f'<animateMotion dur="0.8s" path="{shaft}" fill="freeze"/></circle>'


def overlap(forward: float, backward: float, sends, alt: str) -> str:
    """A modelled step, dashed: a device computes, and beside it the network sends.

    forward, backward: how long these passes take; sends: [(start, end)] of the buckets, from the
    start of the step; all in seconds.
    """
    left, right, high = 62, 400, 26
    end = max(forward + backward, sends[-1][1])
    told = f"{number(1000 * end)} ms, modelled"

    def box(start, stop, y, color):
        x, width = left + start / end * (right - left), (stop - start) / end * (right - left)
        shape = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{high}" fill="{color}"'
        return f'{shape} fill-opacity="0.6" stroke="currentColor" stroke-dasharray="3 2"/>'

    lines = [
        f'<text x="{left - 6}" y="22" text-anchor="end" {TEXT}>GPU</text>',
        f'<text x="{left - 6}" y="57" text-anchor="end" {TEXT}>network</text>',
        box(0, forward, 5, BLUE),
        box(forward, forward + backward, 5, DEVICE_COLORS[2]),
        *(box(start, stop, 40, ORANGE) for start, stop in sends),
        f'<text x="{left}" y="82" {TEXT}>0</text>',
        f'<text x="{right}" y="82" text-anchor="end" {TEXT}>{told}</text>',
    ]
    for text, start in (("forward", 0), ("backward", forward)):
        x = left + start / end * (right - left) + 4
        lines.append(f'<text x="{x:.1f}" y="22" {TEXT}>{text}</text>')
    return picture(410, 88, alt, lines)


def shares(modelled: dict, chosen: float, best: float, alt: str) -> str:
    """Step time over the fast device's part of the batch, {part: time}, modelled and so dashed.

    Parts go from 0 to 1; times are relative to the fast device alone and are drawn up to 4. The
    `chosen` part and the `best` one, both in `modelled`, are marked.
    """
    left, right, top, floor, most = 40, 390, 12, 226, 4

    def place(part, seconds):
        up = min(seconds, most) / most
        return f"{left + part * (right - left):.0f}", f"{floor - up * (floor - top):.0f}"

    line = " ".join(",".join(place(*point)) for point in sorted(modelled.items()))
    lines = [
        f'<path d="M{left},{top}V{floor}H{right}" fill="none" stroke="currentColor"/>',
        f'<text x="{left + 8}" y="{top + 6}" {TEXT}>- - step time, modelled (fast one alone: 1)',
        f'</text><text x="{(left + right) / 2}" y="{floor + 30}" text-anchor="middle" {TEXT}>',
        "part of the batch for the fast device</text>",
        f'<polyline points="{line}" fill="none" stroke="{BLUE}" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
    ]
    for tick in range(5):
        x, y = place(tick / 4, tick)
        lines.append(f'<text x="{x}" y="{floor + 15}" text-anchor="middle" {TEXT}>{25 * tick} %')
        lines.append(f'</text><text x="{left - 5}" y="{y}" text-anchor="end" {TEXT}>{tick}</text>')
    for name, part, look in (
        ("best", best, f'r="8" fill="none" stroke="{ORANGE}" stroke-width="2"'),
        ("chosen", chosen, f'r="4" fill="{BLUE}"'),
    ):
        x, y = place(part, modelled[part])
        lines.append(f'<circle cx="{x}" cy="{y}" {look}>')
        lines.append(f"<title>{name}: {part:.0%}, {modelled[part]:.2f}</title></circle>")
    return picture(410, 262, alt, lines)
