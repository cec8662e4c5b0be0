"""Small pictures as SVG text, for explorers: light enough that a page holds hundreds of them.

One element a line, on axes that stay where they are: so most lines of one picture are lines of the
others too, and an explorer stores them once. Ink and ground are the page's, dark or light. In the
built pages assets/pages/charts.js answers the pointer and the keyboard with their values.
"""

from functools import partial
from html import escape
from math import ceil, floor, log2

from d2lmgpu.figures.axes import Axes, curve, dot, text
from d2lmgpu.figures.checks import is_curve, is_named, is_series, need
from d2lmgpu.figures.data_attribute import data_attribute
from d2lmgpu.figures.style import BLUE, GRAY, PINK, VERMILION, number
from d2lmgpu.machine.checks import is_list, is_real, is_whole

WIDTH = 340  # pixels: so much has a screen of 360 for it
MOST_DEVICES = 256
MODELLED = f'stroke="{BLUE}" stroke-width="2" stroke-dasharray="6 4"'


def picture(width: int, height: int, alt: str, lines, values: dict | None = None) -> str:
    """An SVG element around `lines`, with its text alternative and the values that are read in it.

    values: name -> [(left, right, y, where, value)], the first three in pixels: where a pointer
    finds the value, and how both are said. Raises FigureError for anything else.
    """
    for name, size in (("width", width), ("height", height)):
        need(is_whole(size, 1), name, size, "pixels from 1 up")
    need(isinstance(alt, str), "alt", alt, "what the picture shows as a text")
    good = is_list(lines) and all(isinstance(line, str) for line in lines)
    need(good, "lines", lines, "a list of SVG elements as texts")
    need(
        values is None or is_named(values, partial(is_series, is_one=_is_read)),
        "values",
        values,
        "{name: [(left, right, y, where, value), …]}, three numbers and two texts",
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    read = data_attribute(
        {
            name: [
                (*(round(1000 * x / width) for x in across), round(1000 * y / height), where, value)
                for *across, y, where, value in points
            ]
            for name, points in (values or {}).items()
        }
    )
    opening = [f'<svg {size} role="img" aria-label="{escape(alt)}"', f"{read}>"]
    return "\n".join([*opening, *lines, "</svg>"])


def _is_read(point) -> bool:
    if not isinstance(point, tuple) or len(point) != 5:
        return False
    return all(map(is_real, point[:3])) and all(isinstance(words, str) for words in point[3:])


def scaling(measured: dict, modelled: dict, expected: dict, at: int, alt: str) -> str:
    """Speedup over devices, {devices: speedup}: measured solid, modelled dashed.

    expected: {devices: (least, most)}, the band in which a measured speedup is expected. `at` is
    the number of devices that is marked. Both axes are logarithmic, from 1 to 256 devices and from
    a speedup of 1/16 to 256; the ideal is drawn dotted, and below 1 is what does not pay. Raises
    FigureError for other numbers of devices, and for speedups that are not positive.
    """

    def is_k(k):
        return is_real(k, 1) and k <= MOST_DEVICES

    def is_speedup(value):
        return is_real(value) and value > 0

    for name, points in (("measured", measured), ("modelled", modelled)):
        good = is_curve(points, is_k, is_speedup)
        need(good, name, points, f"{{devices from 1 to {MOST_DEVICES}: speedup above 0}}")
    good = is_curve(expected, is_k, lambda ends: is_series(ends, is_speedup) and len(ends) == 2)
    need(good, "expected", expected, f"{{devices from 1 to {MOST_DEVICES}: (least, most)}}")
    need(is_k(at), "at", at, f"a number of devices from 1 to {MOST_DEVICES}")
    axes = Axes(left=40, right=WIDTH - 18, top=28, floor=242)
    low, high = -4, log2(MOST_DEVICES)

    def place(point):
        k, speedup = point
        return axes.at(log2(k) / high, (max(log2(speedup), low) - low) / (high - low))

    ends = place((1, 1)), place((MOST_DEVICES, MOST_DEVICES))
    ks = sorted(expected)
    around = [(k, expected[k][1]) for k in ks] + [(k, expected[k][0]) for k in reversed(ks)]
    points = " ".join(",".join(place(point)) for point in around)
    ground = [
        _not_paying(axes, place((1, 1))),
        axes.lines(),
        curve(ends, f'stroke="{GRAY}" stroke-dasharray="1 3"'),
        text((axes.left + axes.right) / 2, axes.floor + 30, "GPUs", "middle"),
        text(axes.left - 30, 12, "speedup:  - - modelled,  — measured,  ··· ideal"),
    ]
    for k in (1, 4, 16, 64, 256):
        ground += axes.ticks(place((k, k)), k, k)
    lines = [
        f'<polygon points="{points}" fill="{BLUE}" fill-opacity="0.15"/>',
        curve(map(place, sorted(modelled.items())), MODELLED),
    ]
    if measured:
        look = f'stroke="{VERMILION}" stroke-width="2"'
        lines.append(curve(map(place, sorted(measured.items())), look))
    for k, value in measured.items():
        title = f"{_gpus(k)}, measured: {number(value)}"
        lines.append(dot(place((k, value)), f'r="4" fill="{VERMILION}"', title))
    marked = (
        [
            dot(
                place((at, modelled[at])),
                f'r="5" fill="{BLUE}"',
                f"{_gpus(at)}, modelled: {number(modelled[at])}",
            )
        ]
        if at in modelled
        else []
    )
    curves = {"modelled": modelled, "measured": measured}
    values = {
        name: [_point(place((k, y)), _gpus(k), number(y)) for k, y in sorted(points.items())]
        for name, points in curves.items()
        if points
    }
    # In few lines, each of which an explorer keeps once for all pictures that share it.
    return picture(WIDTH, 278, alt, [" ".join(ground), " ".join(lines), *marked], values)


def paying(modelled: dict, at: float, pays: float | None, alt: str) -> str:
    """Speedup over the size of a batch, {size: speedup}, modelled and so dashed.

    at: the size that is marked, one of these. pays: from which size on the speedup is above 1, or
    None; it is marked. Both axes are logarithmic. Raises FigureError for sizes and speedups that
    are not positive.
    """

    def is_positive(value):
        return is_real(value) and value > 0

    good = is_curve(modelled, is_positive, is_positive) and len(modelled) > 1
    need(good, "modelled", modelled, "{size above 0: speedup above 0}, two at least")
    need(is_real(at) and at in modelled, "at", at, "a size that was modelled")
    least, most = min(modelled), max(modelled)
    good = pays is None or (is_real(pays) and least <= pays <= most)
    need(good, "pays", pays, f"a size from {number(least)} to {number(most)}, or None")
    low = min(-2, floor(log2(min(modelled.values()))))
    high = max(2, ceil(log2(max(modelled.values()))))
    axes = Axes(left=40, right=WIDTH - 18, top=28, floor=242)

    def place(size, speedup):
        across = log2(size / least) / log2(most / least)
        return axes.at(across, (log2(speedup) - low) / (high - low))

    lines = [_not_paying(axes, place(least, 1)), axes.lines()]
    for up in range(low, high + 1, -(-(high - low) // 6)):
        x, y = place(least, 2.0**up)
        lines.append(text(float(x) - 5, float(y) + 4, number(2.0**up), "end"))
    for size, anchor in ((least, "start"), (most, "end")):
        x, _ = place(size, 1)
        lines.append(text(float(x), axes.floor + 15, number(size), anchor))
    lines += [
        text((axes.left + axes.right) / 2, axes.floor + 30, "batch", "middle"),
        text(axes.left - 30, 12, "- - speedup, modelled"),
        curve((place(*point) for point in sorted(modelled.items())), MODELLED),
    ]
    if pays is not None:
        x, y = place(pays, 1)
        before = float(x) > (axes.left + axes.right) / 3  # above a curve that rises
        where, anchor = (float(x) - 12, "end") if before else (float(x) + 12, "start")
        ring = f'r="8" fill="none" stroke="{VERMILION}" stroke-width="2"'
        lines.append(dot((x, y), ring, f"pays from {number(pays)}"))
        lines.append(text(where, float(y) - 10, f"pays from {number(pays)}", anchor))
    marked = dot(
        place(at, modelled[at]), f'r="5" fill="{BLUE}"', f"{number(at)}: {number(modelled[at])}"
    )
    values = {
        "modelled": [
            _point(place(size, y), f"batch {number(size)}", number(y))
            for size, y in sorted(modelled.items())
        ]
    }
    return picture(WIDTH, 278, alt, [" ".join(lines), marked], values)


def _not_paying(axes, point) -> str:
    """The part of the picture below a speedup of 1, which is at the height of `point`."""
    left, height = map(float, point)
    size = f'width="{axes.right - left:.0f}" height="{axes.floor - height:.0f}"'
    shade = f'fill="{PINK}" fill-opacity="0.18"'
    return (
        f'<rect x="{left:.0f}" y="{height:.0f}" {size} {shade}/>'
        f'<path d="M{left:.0f},{height:.0f}H{axes.right}" stroke="{PINK}" stroke-width="2"/>'
        + text(axes.right - 4, axes.floor - 6, "slower than one GPU", "end")
    )


def _gpus(k) -> str:
    return f"{k:,} GPU{'s' * (k != 1)}"


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
    axes = Axes(left=40, right=WIDTH - 20, top=12, floor=226)

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
        ("best", best, f'r="8" fill="none" stroke="{VERMILION}" stroke-width="2"'),
        ("chosen", chosen, f'r="4" fill="{BLUE}"'),
    ):
        lines.append(dot(place(part), look, f"{name}: {part:.0%}, {modelled[part]:.2f}"))
    values = [
        _point(place(part), f"{part:.0%} of the batch", f"{modelled[part]:.2f}")
        for part in sorted(modelled)
    ]
    return picture(WIDTH, 262, alt, lines, {"step time, modelled": values})


def _point(place, where: str, value: str):
    """A value of a curve, as `picture` takes it."""
    x, y = map(float, place)
    return x, x, y, where, value
