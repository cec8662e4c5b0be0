"""Long Sequences"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


def two_blocks(g, shift, split) -> tuple:
    """(output, total) for the first keys, for the others, and for all: one query after another."""
    scores, values = g.normal(size=(5, 8)) + shift, g.normal(size=(8, 3))
    scores[:, :4] += shift * np.linspace(-1, 1, 5)[:, None]  # for one the first, for one the others

    def attended(keys):
        outputs, totals = np.zeros((5, 3)), np.full(5, -np.inf)
        for i, row in enumerate(scores[:, keys]):
            if row.size:
                weights = np.exp(row - row.max())
                outputs[i] = sum(w * v for w, v in zip(weights, values[keys])) / weights.sum()
                totals[i] = row.max() + np.log(weights.sum())
        return outputs, totals

    return *attended(slice(split)), *attended(slice(split, None)), *attended(slice(None))


@exercise(
    "two-blocks",
    "Each output was divided by its own sum of weights. What were the two numerators, and what are "
    "their sum and that of the weights?",
    "A block's part of all weights is exp(its total - the new total), and the new total is "
    "log(exp(total_1) + exp(total_2)): `np.logaddexp` says it without an overflow.",
)
def like_one_block(combine, g) -> str:
    """combine(output_1, total_1, output_2, total_2): (output, total) for all keys."""
    for shift, split in ((0, 4), (0, 2), (1000, 4), (-1000, 4), (0, 8), (0, 0)):
        *parts, output, total = two_blocks(g, shift, split)
        pair = combine(*(part.copy() for part in parts))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise Wrong("type", "`combine` has to return (output, total).")
        case = f"With {split} and {8 - split} keys and scores of about {shift}"
        for name, value, right in zip(("output", "total"), pair, (output, total)):
            try:
                answer = array(value, f"the {name}", right.shape)
            except Wrong as wrong:
                raise Wrong(wrong.reason, f"{case}: {wrong}") from None
            off = distance(answer, right)
            if off > 1e-9:
                reason = "value"
                if name == "output" and distance(answer, (parts[0] + parts[2]) / 2) < 1e-9:
                    reason = "mean"
                raise Wrong(reason, f"{case} the {name} is {off:.1%} off.")
    return "Output and total are those of one block with all keys, also with large scores."


@exercise(
    "whose-keys",
    "Write down for four ranks whose row is where after each round.",
    "What arrives in the first round comes from the rank before, in the second round from the rank "
    "before that one.",
)
def of_the_ranks_before(seen, g) -> str:
    """seen(x): the sum of the rows of this rank and of those before it."""
    n = 4
    rows = g.normal(size=(n, 5))
    ranks = in_processes(seen, [[row.copy()] for row in rows])
    for rank, answer in enumerate(ranks.results):
        answer = array(answer, f"What rank {rank} returns", (5,))
        off = distance(answer, sum(rows[: rank + 1]))
        if off > 1e-9:
            text = f"With {n} processes what rank {rank} returns is {off:.1%} off."
            if distance(answer, sum(rows)) < 1e-9:
                raise Wrong("future", f"{text} It has the rows of later ranks in it.")
            behind = [rows[(rank - s) % n] for s in range(1, n) if (rank + s) % n < rank]
            if distance(answer, sum(behind, rows[rank])) < 1e-9:
                raise Wrong("source", f"{text} It takes rows for those of other ranks.")
            raise Wrong("value", text)
    if max(ranks.messages) > n - 1:
        text = f"With {n} processes a rank sends {max(ranks.messages)} messages; {n - 1} do."
        raise Wrong("messages", text)
    return "Each rank has added the rows of those before it."


def busiest(n, zigzag) -> int:
    """By going through the rounds and through all pairs."""
    held = [(r, 2 * n - 1 - r) if zigzag else (2 * r, 2 * r + 1) for r in range(n)]
    return sum(
        max(sum(j <= i for i in held[rank] for j in held[(rank - step) % n]) for rank in range(n))
        for step in range(n)
    )


formula(
    "ring-steps",
    "How many of the four pairs does a rank compute in the first round, in which it has its own "
    "keys? And in the others?",
    "Contiguous: in each later round there is a rank that computes all four. Zigzag: each rank "
    "computes two.",
    cases=lambda g: [
        (int(n), bool(zigzag))
        for n in (1, 2, *g.integers(3, 40, size=3))
        for zigzag in (False, True)
    ],
    right=busiest,
    slips={
        "mean": (
            lambda n, zigzag: 2 * n + 1,
            "That is what a rank computes in the mean. But all wait for the busiest.",
        ),
        "all": (
            lambda n, zigzag: n * (2 * n + 1),
            "These are the pairs of all ranks. They compute at the same time.",
        ),
        "square": (
            lambda n, zigzag: 2 * n + 2 if zigzag else 4 * n,
            "In the first round the mask hides one of the four pairs.",
        ),
    },
    what="The number of pairs",
    says="The steps are right, contiguous and zigzag.",
)
