"""Draws the picture of the first page, chapters/cover.svg: python tools/cover.py

A batch is split over four devices, their gradients meet, and the sum goes back to all of them.
Where motion is allowed it happens once, in five seconds. Otherwise the picture stands still. In a
page it takes the page's ink; as a picture of its own, in a notebook, one for light and dark.
"""

from math import dist
from pathlib import Path

from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import COLORS

FILE = Path(__file__).parents[1] / "chapters" / "cover.svg"
WIDTH, HEIGHT = 480, 300
ACROSS = (84, 188, 292, 396)  # the middles of the devices
BATCH, DEVICES, SUM = 34, 138, 256  # heights of what lies below each other
CELL, STEP, SIDE = 20, 26, 64
SECONDS = 5  # what moves longer by itself must have a button that stops it (WCAG 2.2.2)
ALT = (
    "A batch of eight examples is split over four devices, two for each. The gradients of the four "
    "devices meet in one sum, and the sum goes back to every device."
)
STYLE = f"""
.cover {{ display: block; width: 100%; max-width: 36rem; height: auto; margin: 0 auto 1.5rem; }}
.cover text {{ font-size: 16px; font-weight: 600; fill: currentColor; }}
.cover:root {{ color: #767676; font-family: sans-serif; }}
@media (prefers-reduced-motion: no-preference) {{
  .cover g[class] {{ animation: {SECONDS}s ease-in-out both; }}
  .cover g.cover-shard {{ animation-name: cover-shard; }}
  .cover g.cover-device {{ animation-name: cover-device; }}
  .cover g.cover-gradient {{ animation-name: cover-gradient; }}
  .cover g.cover-total {{ animation-name: cover-total; }}
  .cover g.cover-back {{ animation-name: cover-back; }}
}}
@keyframes cover-shard {{
  0%, 8% {{ transform: translate(var(--from)); }} 30%, 100% {{ transform: none; }}
}}
@keyframes cover-device {{ 0%, 28% {{ opacity: 0.45; }} 40%, 100% {{ opacity: 1; }} }}
@keyframes cover-gradient {{
  0%, 40% {{ opacity: 0; transform: translate(var(--start)); }} 45% {{ opacity: 1; }}
  62% {{ opacity: 1; transform: translate(var(--end)); }}
  63% {{ opacity: 0; transform: translate(var(--end)); }}
  88% {{ opacity: 0; transform: none; }} 94%, 100% {{ opacity: 1; transform: none; }}
}}
@keyframes cover-back {{
  0%, 66% {{ opacity: 0; transform: translate(var(--from)); }}
  68% {{ opacity: 1; transform: translate(var(--from)); }} 86%, 100% {{ transform: none; }}
}}
@keyframes cover-total {{ 0%, 60% {{ opacity: 0.25; }} 66%, 100% {{ opacity: 1; }} }}
"""


def cell(x: float, y: float, color: str, look: str = "") -> str:
    """An example of the batch."""
    box = f'x="{x - CELL / 2:g}" y="{y - CELL / 2:g}" width="{CELL}" height="{CELL}" rx="4"'
    return f'<rect {box} fill="{color}"{look}/>'


def shard(i: int) -> str:
    """The two examples of device i: pale where they came from, full where they are."""
    color, x = COLORS[i], ACROSS[i]
    first = WIDTH / 2 + STEP * (2 * i - 3.5)
    there = "".join(cell(first + STEP * j, BATCH, color, ' fill-opacity="0.3"') for j in (0, 1))
    here = "".join(cell(x + STEP * (j - 0.5), DEVICES, color) for j in (0, 1))
    moved = f"--from: {first + STEP / 2 - x:g}px, {BATCH - DEVICES}px"
    return f'{there}<g class="cover-shard" style="{moved}">{here}</g>'


def gradient(i: int) -> str:
    """The gradient of device i on its way to the sum."""
    at, start, end = (between(ACROSS[i], part) for part in (0.4, 0, 1))
    ways = [f"--{name}: {to[0] - at[0]:g}px, {to[1] - at[1]:g}px"
            for name, to in (("start", start), ("end", end))]  # fmt: skip
    dot = f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="8" fill="{COLORS[i]}"/>'
    return f'<g class="cover-gradient" style="{"; ".join(ways)}">{dot}</g>'


def between(x: float, part: float) -> tuple[float, float]:
    """The point on the way from the device at x to the sum, of which `part` is gone."""
    foot = DEVICES + 46
    return x + part * (WIDTH / 2 - x), foot + part * (SUM - foot)


def ways() -> str:
    """Lines along which things move: from the batch to the devices, from there to the sum."""
    down = "".join(
        f"M{WIDTH / 2 + STEP * (2 * i - 3):g} {BATCH + 16}L{x} {DEVICES - 46}"
        for i, x in enumerate(ACROSS)
    )
    both = "".join(
        "M{:g} {:g}L{:.0f} {:.0f}".format(*foot, *between(x, 1 - 27 / dist(foot, (WIDTH / 2, SUM))))
        for x, foot in ((x, between(x, 0)) for x in ACROSS)
    )
    return f'<path d="{down}{both}" stroke="currentColor" stroke-opacity="0.35" stroke-width="2"/>'


def ring(x: float, y: float, radius: float) -> str:
    """The sum: a quarter of each colour."""
    look = f'r="{radius:g}" fill="none" stroke-width="{radius * 0.8:g}" pathLength="360"'
    return "".join(
        f'<circle cx="{x:g}" cy="{y:g}" {look} stroke="{color}" stroke-dasharray="90 270" '
        f'transform="rotate({90 * i - 90} {x:g} {y:g})"/>'
        for i, color in enumerate(COLORS)
    )


def total() -> str:
    """The sum where the gradients meet."""
    return f'<g class="cover-total">{ring(WIDTH / 2, SUM, 15)}</g>'


def back(i: int) -> str:
    """The sum as device i gets it."""
    x, y = ACROSS[i] + SIDE / 2, DEVICES + SIDE / 2
    moved = f"--from: {WIDTH / 2 - x:g}px, {SUM - y:g}px"
    return f'<g class="cover-back" style="{moved}">{ring(x, y, 7)}</g>'


def cover() -> str:
    """The picture as SVG, in the page's ink."""
    chips = [f'<g class="cover-device">{device(x, DEVICES, SIDE, color, 0.2)}</g>'
             for x, color in zip(ACROSS, COLORS, strict=True)]  # fmt: skip
    words = [
        f'<text x="{WIDTH / 2 + 4.4 * STEP:g}" y="{BATCH + 6}">one batch</text>',
        f'<text x="{WIDTH / 2 + 40:g}" y="{SUM + 22}">one sum, for all</text>',
    ]
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cover" viewBox="0 0 {WIDTH} {HEIGHT}"'
    )
    parts = [
        *chips,
        *map(shard, range(4)),
        *map(back, range(4)),
        total(),
        *map(gradient, range(4)),
        *words,
    ]
    return "\n".join([
        f'{opening} width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{ALT}">',
        f"<style>{STYLE}</style>", ways(), *parts, "</svg>\n",
    ])  # fmt: skip


if __name__ == "__main__":
    FILE.write_text(cover(), encoding="utf-8")
