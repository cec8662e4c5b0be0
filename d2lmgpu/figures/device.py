"""The one drawing of a device, a chip with three legs on each side: figures and map."""

LEGS = (-0.28, 0, 0.28)  # where they are on a side of length 1


def device(x: float, y: float, side: float, color: str, opacity: float = 1, more: str = "") -> str:
    """The device whose middle is (x, y), as one SVG group; `more` are further attributes of it.

    `opacity` is that of the body alone: with at most `style.TINT`, ink on it can be read.
    """
    half, foot = side / 2, side * 0.62  # where the body ends, and where the legs do
    legs = "".join(
        f"M{x + side * leg:.4g} {y - foot:.4g}V{y - half:.4g}M{x + side * leg:.4g} {y + foot:.4g}"
        f"V{y + half:.4g}M{x - foot:.4g} {y + side * leg:.4g}H{x - half:.4g}"
        f"M{x + foot:.4g} {y + side * leg:.4g}H{x + half:.4g}"
        for leg in LEGS
    )
    body = f'x="{x - half:.4g}" y="{y - half:.4g}" width="{side:.4g}" height="{side:.4g}"'
    return (
        f'<g stroke="{color}" stroke-width="{side / 14:.3g}"{more}><path d="{legs}"/>'
        f'<rect {body} rx="{side / 5:.3g}" fill="{color}" fill-opacity="{opacity}"/></g>'
    )
