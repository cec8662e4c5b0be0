"""An MLP over ranks, columns and then rows, step by step: who holds which part of which matrix.

The steps are those of the plan that ``split_mlp.execute`` runs; the script beside this file draws
them. Without scripts words say what each rank holds, and what the two sums send.
"""

from d2lmgpu.collectives.split_mlp import BACKWARD, FORWARD, START, part
from d2lmgpu.figures.checks import need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.machine.checks import is_whole

RANKS = (2, 3, 4)
TOKENS, WIDTH, HIDDEN = 6, 4, 12  # 12 units can be cut in 2, 3 and 4
SHAPES = {
    "X": (TOKENS, WIDTH),
    "A": (WIDTH, HIDDEN),
    "H": (TOKENS, HIDDEN),
    "Z": (TOKENS, HIDDEN),
    "B": (HIDDEN, WIDTH),
    "Y": (TOKENS, WIDTH),
}
SHAPES |= {f"d{name}": SHAPES[name] for name in "XAHBY"}


class SplitMLP(Moving):
    """The steps of an MLP that is cut over ranks, forward and backward, on a clock that plays.

    Parameters
    ----------
    ranks : int
        How many ranks there are at first: 2 to 4.

    Raises
    ------
    FigureError
        For another number of ranks.
    """

    def __init__(self, ranks: int = 2):
        need(is_whole(ranks, min(RANKS), max(RANKS)), "ranks", ranks, "2, 3 or 4")
        plans = {k: as_data(k) for k in RANKS}
        words = f"An MLP over {ranks} ranks. {plans[ranks]['words'][0]} {plans[ranks]['cost']}"
        about = (
            "Each box is a rank. Grey is what all ranks have; a rank's own part has its colour, "
            "inside the dashed outline of the whole. Stripes are a term, which is as large as the "
            "sum. What a step reads has a thick frame. The gradients stand beside their matrices."
        )
        super().__init__("split", {"ranks": ranks, "shapes": SHAPES, "plans": plans}, words, about)


def as_data(k: int) -> dict:
    """The plan on k ranks, as the script draws and says it.

    `before` is what is held at first, name -> [placement, parts], a part [first row, end, first
    column, end] for each rank; `steps` have "title", "of", "sums" and "held", what has come or
    changed; `words` say it before and after each step, and `cost` those for all.
    """
    steps = [
        {
            "title": _title(step),
            "of": list(step.of),
            "sums": step.is_sum,
            "held": {step.makes: _held(step.makes, step.placement, k)}
            | ({"dY": _held("dY", "whole", k)} if step is BACKWARD[0] else {}),
        }
        for step in (*FORWARD, *BACKWARD)
    ]
    sums = [step for step in (*FORWARD, *BACKWARD) if step.is_sum]
    numbers = " and ".join(str(_size(step.makes)) for step in sums)
    each = HIDDEN // k
    return {
        "before": {name: _held(name, placement, k) for name, placement in START.items()},
        "steps": steps,
        "words": [
            f"All ranks have X. Each has {each} of {HIDDEN} columns of A and the same {each} rows "
            "of B.",
            *(_words(step, k) for step in (*FORWARD, *BACKWARD)),
        ],
        "cost": f"{len(sums)} of {len(steps)} steps are sums over the ranks, of {numbers} "
        "numbers. All others send nothing.",
    }


def _size(name: str) -> int:
    rows, columns = SHAPES[name]
    return rows * columns


def _held(name: str, placement: str, k: int) -> list:
    parts = (part(placement, SHAPES[name], k, rank) for rank in range(k))
    return [placement, [[r.start, r.stop, c.start, c.stop] for r, c in parts]]


def _title(step) -> str:
    direction = "Forward" if step in FORWARD else "Backward"
    if step.is_sum:
        return f"{direction}, {step.does}: the terms of {step.makes} are summed"
    return f"{direction}: {step.makes} = {step.does}"


def _words(step, k: int) -> str:
    """What the ranks have after a step, and what was sent."""
    rows, columns = SHAPES[step.makes]
    if step.is_sum:
        return (
            f"All {k} ranks send and add up their terms of {step.makes}, an allreduce of "
            f"{_size(step.makes)} numbers. Now all have {step.makes}, {rows} by {columns}."
        )
    if step.placement == "term":
        return (
            f"Each rank has a term of {step.makes}, {rows} by {columns} as the whole. Nothing is "
            "sent yet."
        )
    size = (columns if step.placement == "columns" else rows) // k
    return (
        f"Each rank has {size} {step.placement} of {step.makes}, {rows} by {columns}, from its own "
        "parts. Nothing is sent."
    )
