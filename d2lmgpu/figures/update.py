"""One update on two devices as a strip of small pictures: a copy before it, then four steps."""

from math import dist

from d2lmgpu.figures.axes import text
from d2lmgpu.figures.checks import need
from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import COLORS, INK
from d2lmgpu.figures.svg import picture

COPY = ("get_params", "Each device gets a copy of all parameters.")
STEPS = {  # step: its function on the pages from scratch, and what it does
    "split": ("split_batch", "A batch of seven examples is split: four and three."),
    "compute": ("forward_backward", "Each device computes the gradient of its own examples."),
    "add": ("allreduce", "The two gradients are added, and each device gets the sum."),
    "update": ("sgd", "Each device takes the same step with the sum. The copies stay equal."),
}
PICTURES = {"copy": COPY} | STEPS
WIDTH, HEIGHT, SIDE = 132, 150, 42
LEFT, MIDDLE, RIGHT, HIGH, LOW = 36, 66, 96, 58, 108
BEFORE, AFTER = (22, 14, 18), (16, 22, 11)  # lengths of bars that stand for parameters


class Strip:
    """Pictures in a row, or in several where the page is narrow; `alt` says all of them."""

    def __init__(self, alt: str, pictures: list[str]):
        self.alt, self.pictures = alt, pictures

    def __repr__(self):
        return self.alt

    def _repr_html_(self) -> str:
        look = "display:flex;flex-wrap:wrap;justify-content:center;gap:0.75rem 0.5rem"
        row = "".join(self.pictures)
        return f'<div class="steps" role="group" aria-label="{self.alt}" style="{look}">{row}</div>'


def update_steps(*current: str) -> Strip:
    """The copy before the first update, then the four steps of each: split, compute, add, update.

    Parameters
    ----------
    current : str
        Of "copy" and the four steps, the pictures that stand out; all if none is named.

    Returns
    -------
    Strip
        The five pictures.

    Raises
    ------
    FigureError
        For other names.
    """
    for name in current:
        need.choice("a step", name, tuple(PICTURES))
    marked = f", of which this is about {' and '.join(current)}" if current else ""
    titles = ["once: copy", *(f"{number} {name}" for number, name in enumerate(STEPS, start=1))]
    drawn = (_copy, _split, _compute, _add, _update)
    return Strip(
        f"One update on two devices in four steps, after one copy for all updates{marked}",
        [
            _picture(title, name, draw(), not current or name in current)
            for title, name, draw in zip(titles, PICTURES, drawn, strict=True)
        ],
    )


def _picture(title: str, name: str, lines: list[str], is_current: bool) -> str:
    """A picture with its title and function; pale unless it is a current one."""
    function, what = PICTURES[name]
    when = "Once, before the first update" if name == "copy" else f"Step {title}"
    weight = ' font-weight="bold"' if is_current else ""
    pale = "" if is_current else ' opacity="0.3"'
    parts = [
        text(MIDDLE, 12, title, "middle", more=weight),
        f"<g{pale}>",
        *lines,
        "</g>",
        text(MIDDLE, HEIGHT - 5, function, "middle", more=' font-family="monospace"'),
    ]
    return picture(WIDTH, HEIGHT, f"{when}: {what}", parts)


def _devices(y: int) -> list[str]:
    return [device(x, y, SIDE, color, 0.2) for x, color in zip((LEFT, RIGHT), COLORS)]


def _parameters(x: int, y: int, lengths) -> str:
    """Three bars: parameters with their values."""
    bars = "".join(f"M{x - 11} {y + 8 * (i - 1)}h{length}" for i, length in enumerate(lengths))
    return f'<path d="{bars}" stroke="{INK}" stroke-width="4.5" fill="none"/>'


def _examples(x: float, y: float, color: str, count: int, across: int) -> list[str]:
    """Examples of a batch, so many in a row."""
    return [
        f'<rect x="{x + 11 * (i % across):g}" y="{y + 11 * (i // across):g}" width="9" height="9" '
        f'rx="2" fill="{color}"/>'
        for i in range(count)
    ]


def _shards(y: int) -> list[str]:
    """What each device has of the batch."""
    return _examples(LEFT - 10, y - 10, COLORS[0], 4, 2) + _examples(
        RIGHT - 10, y - 10, COLORS[1], 3, 2
    )


def _gradient(x: int, y: int, color: str) -> str:
    return f'<circle cx="{x}" cy="{y}" r="7" fill="{color}"/>'


def _sum(x: int, y: int) -> str:
    """The sum of both gradients: a disc of both colours."""
    halves = zip((f"M{x} {y - 8}a8 8 0 0 0 0 16z", f"M{x} {y - 8}a8 8 0 0 1 0 16z"), COLORS)
    return "".join(f'<path d="{half}" fill="{color}"/>' for half, color in halves)


def _arrow(start, end, both: bool = False) -> str:
    """From one point to another, and back."""
    length = dist(start, end)
    dx, dy = ((b - a) / length for a, b in zip(start, end))

    def head(at, forward):  # 1 along the arrow, -1 against it
        back = -5 * forward
        sides = ((back * dx + s * 4 * dy, back * dy - s * 4 * dx) for s in (1, -1))
        first, second = (f"{at[0] + x:.1f} {at[1] + y:.1f}" for x, y in sides)
        return f"M{first}L{at[0]} {at[1]}L{second}"

    shaft = f"M{start[0]} {start[1]}L{end[0]} {end[1]}{head(end, 1)}"
    path = shaft + head(start, -1) * both
    return f'<path d="{path}" stroke="{INK}" stroke-width="1.5" fill="none"/>'


def _copy() -> list[str]:
    down = [_arrow((MIDDLE + side * 8, 52), (MIDDLE + side * 20, 74)) for side in (-1, 1)]
    held = [_parameters(x, LOW - 2, BEFORE) for x in (LEFT, RIGHT)]
    return [_parameters(MIDDLE, 36, BEFORE), *down, *_devices(LOW - 2), *held]


def _split() -> list[str]:
    batch = _examples(28, 31, COLORS[0], 4, 4) + _examples(72, 31, COLORS[1], 3, 3)
    down = [_arrow((x, 46), (to, 74)) for x, to in ((48, LEFT + 4), (87, RIGHT - 2))]
    return [*batch, *down, *_devices(LOW - 2), *_shards(LOW - 2)]


def _compute() -> list[str]:
    down = [_arrow((x, HIGH + 29), (x, LOW)) for x in (LEFT, RIGHT)]
    gradients = [_gradient(x, LOW + 12, color) for x, color in zip((LEFT, RIGHT), COLORS)]
    return [*_devices(HIGH), *_shards(HIGH), *down, *gradients]


def _add() -> list[str]:
    held = [_gradient(x, HIGH, color) for x, color in zip((LEFT, RIGHT), COLORS)]
    arrows = [
        _arrow((x, HIGH + 29), (MIDDLE + side * 11, LOW + 7), both=True)
        for x, side in ((LEFT + 4, -1), (RIGHT - 4, 1))
    ]
    return [*_devices(HIGH), *held, *arrows, _sum(MIDDLE, LOW + 14)]


def _update() -> list[str]:
    up = [_arrow((x, LOW + 2), (x, HIGH + 29)) for x in (LEFT, RIGHT)]
    held = [_parameters(x, HIGH, AFTER) for x in (LEFT, RIGHT)]
    return [*_devices(HIGH), *held, *up, *(_sum(x, LOW + 14) for x in (LEFT, RIGHT))]
