"""The live curves as one short SVG string: cheap enough to be drawn ten times a second."""

from html import escape
from math import isfinite

from d2lmgpu.figures.axes import Axes, curve, dot, text
from d2lmgpu.figures.style import COLORS, number

WIDTH, HEIGHT = 300, 170
AXES = Axes(left=44, right=288, top=22, floor=140, digits=1)
MOST = 150  # points a curve


def curves_svg(curves, xlabel, x_end=None, dots=False, modelled=None):
    """An SVG picture of ``curves`` (label to ``(xs, ys)``): side by side, each with its own scale.

    ``x_end`` is how far the x axis goes at least. Numbers that are not finite leave a gap and are
    told in words. With ``dots`` each point says its numbers when it is pointed at. ``modelled``
    maps labels to a level that was forecast: dashed, beneath the curve.
    """
    modelled = modelled or {}
    curves = {label: points for label, points in curves.items() if points[0]}
    panels = [
        panel(i, label, xs, ys, xlabel, x_end, dots, modelled.get(label))
        for i, (label, (xs, ys)) in enumerate(curves.items())
    ]
    points_in_words = "; ".join(
        f"{label} {number(ys[-1])} at {number(xs[-1])}"
        + (f", modelled {number(modelled[label])}" if label in modelled else "")
        for label, (xs, ys) in curves.items()
    )
    each = f"width:{WIDTH}px;max-width:100%;height:auto"
    pictures = "".join(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="{each}" aria-hidden="true">{inner}</svg>'
        for inner in panels
    )
    label = escape(f"Curves over {xlabel}: {points_in_words or 'no point yet'}.", quote=True)
    return f'<div role="img" aria-label="{label}">{pictures}</div>'


def panel(i, label, xs, ys, xlabel, x_end, dots, modelled=None):
    """One curve with its axes, as the inside of an ``svg`` element."""
    finite = [(x, y) for x, y in zip(xs, ys, strict=True) if isfinite(y)]
    if len(finite) < len(ys):
        first = next(x for x, y in zip(xs, ys) if not isfinite(y))
        label += f" (not finite from {xlabel} {number(first)})"
    low_x, high_x = min(xs), max(max(xs), x_end or 0)
    shown = [y for _, y in finite] + [modelled] * (modelled is not None)
    low, high = min((0, *shown)), max(shown, default=1)

    def place(point):
        x, y = point
        across = (x - low_x) / ((high_x - low_x) or 1)
        up = (y / 2 - low / 2) / ((high / 2 - low / 2) or 1)  # halves: no overflow in between
        return AXES.at(across, up)

    color = COLORS[i % len(COLORS)]
    lines = [AXES.lines(' opacity=".5"')]
    if modelled is not None:
        level = f"M{AXES.left},{place((low_x, modelled))[1]}H{AXES.right}"
        lines.append(f'<path d="{level}" stroke="currentColor" stroke-dasharray="5 4"/>')
        lines.append(text(AXES.right, 12, "dashed: modelled", "end"))
    lines += [
        text(AXES.left, 12, label, more=' font-weight="bold"'),
        text(AXES.left - 4, AXES.top + 8, number(high), "end"),
        text(AXES.left - 4, AXES.floor, number(low), "end"),
        text(AXES.left, HEIGHT - 14, number(low_x)),
        text(AXES.right, HEIGHT - 14, number(high_x), "end"),
        text((AXES.left + AXES.right) / 2, HEIGHT - 4, xlabel, "middle"),
        curve(map(place, thin(finite)), f'stroke="{color}" stroke-width="1.6"'),
    ]
    for x, y in finite if dots else finite[-1:]:
        told = f"{label} {number(y)} at {xlabel} {number(x)}"
        lines.append(dot(place((x, y)), f'r="3" fill="{color}"', told))
    return "".join(lines)


def thin(points):
    """At most ``MOST`` of ``points``, the last one among them."""
    step = -(-len(points) // MOST)
    return points[::-step][::-1] if step > 1 else points
