"""Tensor parallelism as a picture: two products, and whose is each column, row and term."""

from itertools import accumulate

from matplotlib.patches import Rectangle

from d2lmgpu.figures.chart import DRAWN_INK, WIDTH, Chart, styled
from d2lmgpu.figures.checks import is_series, need
from d2lmgpu.figures.diagrams import PALE
from d2lmgpu.figures.style import COLORS
from d2lmgpu.machine.checks import is_whole

GAP = 1.7  # cells between two matrices
MOST = 12  # columns of a matrix: more cannot be told apart on a phone


@styled
def columns_then_rows(tokens: int, columns, rows) -> Chart:
    """$Y = f(XA)B$ over devices: A in columns, B in rows, so that Y is a sum of terms.

    tokens: rows of X. columns: the shapes of the devices' parts of A, as (width, hidden units).
    rows: those of B, as (hidden units, width). One cell is one number; what a device holds or
    computes has its colour, what all devices have is grey. Raises FigureError for shapes that do
    not fit together, for fewer than two devices and for more than there are colours.
    """
    need(is_whole(tokens, 1, MOST), "tokens", tokens, f"a whole number from 1 to {MOST}")
    for name, shapes in (("columns", columns), ("rows", rows)):
        need(is_series(shapes, _is_shape), name, shapes, "a list of pairs of whole numbers from 1")
    parts, k = [units for _, units in columns], len(columns)
    need(1 < k <= len(COLORS), "columns", columns, f"parts of 2 to {len(COLORS)} devices")
    width, hidden = columns[0][0], sum(parts)
    need(
        {w for w, _ in columns} == {width} and hidden <= MOST,
        "columns",
        columns,
        f"parts of equal height, together at most {MOST} wide",
    )
    need(
        [tuple(shape) for shape in rows] == [(units, width) for units in parts],
        "rows",
        rows,
        "as many rows a device as it has columns of A, as wide as A is high",
    )
    owner = [device for device, units in enumerate(parts) for _ in range(units)]
    devices = "; ".join(
        f"device {device}: columns {end - units} to {end - 1} of A and these rows of B"
        for device, (units, end) in enumerate(zip(parts, accumulate(parts), strict=True))
    )
    alt = (
        f"X, {tokens} by {width}, is on every device. A, {width} by {hidden}, is cut into columns, "
        f"B, {hidden} by {width}, into rows. {devices}. A device's columns of X A are all that "
        f"its rows of B need; the output is the sum of {k} terms, one a device."
    )
    across = max(width + 2 * hidden + 2 * GAP, hidden + width * (k + 1) + GAP * (k + 1))
    tall = max(width, tokens) + hidden + 5.2
    chart = Chart(alt, WIDTH, WIDTH * tall / across)
    axes = chart.subplots()
    axes.set(xlim=(-0.3, across + 0.3), ylim=(-1.3, tall - 0.9), aspect="equal")
    axes.axis("off")
    middle = hidden + 3.2 + max(width, tokens) / 2  # of the upper product, and of the lower one
    low = hidden / 2
    x = _matrix(axes, 0, middle, [[None] * width] * tokens, "X")
    x = _sign(axes, x, middle, "×")
    x = _matrix(axes, x, middle, [owner] * width, "A, in columns")
    x = _sign(axes, x, middle, "=")
    _matrix(axes, x, middle, [owner] * tokens, "X A")
    x = _matrix(axes, 0, low, [owner] * tokens, "GELU(X A)")
    x = _sign(axes, x, low, "×")
    x = _matrix(axes, x, low, [[device] * width for device in owner], "B, in rows")
    for device in range(k):
        x = _sign(axes, x, low, "+" if device else "=")
        x = _matrix(axes, x, low, [[device] * width] * tokens, f"term {device}")
    return chart


def _is_shape(shape) -> bool:
    return isinstance(shape, tuple) and len(shape) == 2 and all(is_whole(n, 1) for n in shape)


def _matrix(axes, left: float, middle: float, owners, name: str) -> float:
    """A cell for each number, in its device's colour; returns where it ends."""
    height = len(owners)
    for i, row in enumerate(owners):
        for j, device in enumerate(row):
            cell = Rectangle((left + j, middle + height / 2 - 1 - i), 0.88, 0.88)
            cell.set_facecolor(PALE if device is None else COLORS[device])
            axes.add_patch(cell)
    end = left + len(owners[0])
    place = ((left + end) / 2, middle - height / 2 - 0.35)
    axes.text(*place, name, ha="center", va="top", color=DRAWN_INK)
    return end


def _sign(axes, left: float, middle: float, sign: str) -> float:
    axes.text(left + GAP / 2, middle, sign, ha="center", va="center", color=DRAWN_INK)
    return left + GAP
