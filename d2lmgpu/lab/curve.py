"""The live curves as one short SVG string: cheap enough to be drawn ten times a second."""

from html import escape
from math import isfinite

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 300, 170, 44, 30, 22
MOST = 150  # points a curve
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


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
    said = "; ".join(
        f"{label} {number(ys[-1])} at {number(xs[-1])}"
        + (f", modelled {number(modelled[label])}" if label in modelled else "")
        for label, (xs, ys) in curves.items()
    )
    each = f"width:{WIDTH}px;max-width:100%;height:auto"
    pictures = "".join(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" style="{each}" aria-hidden="true">{inner}</svg>'
        for inner in panels
    )
    label = escape(f"Curves over {xlabel}: {said or 'no point yet'}.", quote=True)
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
    right, floor = WIDTH - 12, HEIGHT - BOTTOM

    def at(x, y):
        across = (x - low_x) / ((high_x - low_x) or 1)
        up = (y / 2 - low / 2) / ((high / 2 - low / 2) or 1)  # halves: no overflow in between
        return f"{LEFT + across * (right - LEFT):.1f}", f"{floor - up * (floor - TOP):.1f}"

    points = [",".join(at(x, y)) for x, y in thin(finite)]
    color, text = COLORS[i % len(COLORS)], 'font-size="11" fill="currentColor"'
    marked = "".join(
        '<circle cx="{}" cy="{}" r="3" '.format(*at(x, y)) + f'fill="{color}">'
        f"<title>{escape(label)} {number(y)} at {escape(xlabel)} {number(x)}</title></circle>"
        for x, y in (finite if dots else finite[-1:])
    )
    forecast = ""
    if modelled is not None:
        y = at(low_x, modelled)[1]
        forecast = (
            f'<path d="M{LEFT},{y}H{right}" stroke="currentColor" stroke-dasharray="5 4"/>'
            f'<text x="{right}" y="12" text-anchor="end" {text}>dashed: modelled</text>'
        )
    axes = (
        f'<path d="M{LEFT},{TOP}V{floor}H{right}" fill="none" stroke="currentColor" opacity=".5"/>'
    )
    return (
        f'{axes}{forecast}<text x="{LEFT}" y="12" {text} font-weight="bold">{escape(label)}</text>'
        f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end" {text}>{number(high)}</text>'
        f'<text x="{LEFT - 4}" y="{floor}" text-anchor="end" {text}>{number(low)}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 14}" {text}>{number(low_x)}</text>'
        f'<text x="{right}" y="{HEIGHT - 14}" text-anchor="end" {text}>{number(high_x)}</text>'
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 4}" text-anchor="middle" {text}>'
        f"{escape(xlabel)}</text>"
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="1.6"/>'
        f"{marked}"
    )


def number(value):
    """A number as a reader wants it: three significant digits, thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def thin(points):
    """At most ``MOST`` of ``points``, the last one among them."""
    step = -(-len(points) // MOST)
    return points[::-step][::-1] if step > 1 else points
