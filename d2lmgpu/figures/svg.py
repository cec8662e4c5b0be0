"""Small pictures as SVG text, for explorers: light enough that a page holds hundreds of them.

One element a line, on axes that stay where they are: so most lines of one picture are lines of the
others too, and an explorer stores them once. Ink and ground are the page's, dark or light. In the
built pages assets/pages/charts.js answers the pointer and the keyboard with their values.
"""

from functools import partial
from html import escape
from math import log2

from d2lmgpu.figures.axes import Axes, curve, dot, text
from d2lmgpu.figures.checks import is_curve, is_named, is_series, need
from d2lmgpu.figures.style import BLUE, GRAY, VERMILLION, number
from d2lmgpu.figures.told import told
from d2lmgpu.machine.checks import is_list, is_real, is_whole

WIDTH = 340  # pixels: so much has a screen of 360 for it
MOST_DEVICES = 1024
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
    need(values is None or is_named(values, partial(is_series, is_one=_is_read)), "values", values,
         "{name: [(left, right, y, where, value), …]}, three numbers and two texts")  # fmt: skip
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    size += f' style="--width:{width}px"'
    read = told({
        name: [
            (*(round(1000 * x / width) for x in across), round(1000 * y / height), where, value)
            for *across, y, where, value in points
        ]
        for name, points in (values or {}).items()
    })  # fmt: skip
    opening = [f"<svg {size}", f'role="img" aria-label="{escape(alt)}"', f"{read}>"]
    return "\n".join([*opening, *lines, "</svg>"])


def _is_read(point) -> bool:
    if not isinstance(point, tuple) or len(point) != 5:
        return False
    return all(map(is_real, point[:3])) and all(isinstance(said, str) for said in point[3:])


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
    axes = Axes(left=40, right=WIDTH - 18, top=12, floor=226)
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
            title = f"{_gpus(k)}, {kind}: {number(value)}"
            lines.append(dot(place((k, value)), f'r="4" fill="{color}"', title))
    curves = {"modelled": modelled, "measured": measured}
    values = {
        name: [_point(place((k, y)), _gpus(k), number(y)) for k, y in sorted(points.items())]
        for name, points in curves.items()
        if points
    }
    return picture(WIDTH, 262, alt, lines, values)


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
        ("best", best, f'r="8" fill="none" stroke="{VERMILLION}" stroke-width="2"'),
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
