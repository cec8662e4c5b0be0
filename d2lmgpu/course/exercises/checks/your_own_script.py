"""Your Own Script"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula


def some_ranks(g):
    """(gradients of the ranks, their rows): rows differ."""
    k, n = int(g.integers(2, 5)), int(g.integers(3, 7))
    rows = g.choice(np.arange(1, 20), k, replace=False)
    return list(g.normal(size=(k, n))), [int(one) for one in rows]


def row_by_row(gradients, rows):
    """Each rank's gradient as often as it has rows."""
    return np.mean([g for g, n in zip(gradients, rows, strict=True) for _ in range(n)], axis=0)


formula(
    "mean-of-all",
    "A mean times its number of rows is a sum. Sums add up.",
    "Add what each rank has summed, and divide once, by the rows of all ranks.",
    cases=lambda g: [some_ranks(g) for _ in range(8)],
    right=row_by_row,
    slips={
        "means": (
            lambda gradients, rows: np.mean(gradients, axis=0),
            "A rank with more rows counts no more than the others: a mean of means.",
        ),
        "sum": (
            lambda gradients, rows: np.array(rows) @ np.array(gradients),
            "That is the gradient of a sum over all rows.",
        ),
        "each": (
            lambda gradients, rows: np.array(rows) @ np.array(gradients) / len(rows),
            "It is divided by the number of ranks, and not by that of rows.",
        ),
    },
    what="The gradient",
    says="One device with all rows has that gradient.",
)


def to_clip(g):
    """Gradients of ranks of very different lengths, and a limit below or above their mean's."""
    k, n = int(g.integers(2, 5)), int(g.integers(3, 7))
    gradients = list(g.normal(size=(k, n)) * g.choice([0.2, 5.0], (k, 1)))
    return gradients, float(g.uniform(0.3, 1.5) * np.linalg.norm(np.mean(gradients, axis=0)))


def at_most(gradient, limit):
    size = np.sqrt((np.asarray(gradient) ** 2).sum())
    return gradient if size <= limit else gradient / size * limit


formula(
    "clip-once",
    "One device never sees the gradients of the ranks. Which gradient does it clip?",
    "First the mean over ranks, then its norm, then the factor, which is never above 1.",
    cases=lambda g: [to_clip(g) for _ in range(12)],
    right=lambda gradients, limit: at_most(sum(gradients) / len(gradients), limit),
    slips={
        "early": (
            lambda gradients, limit: np.mean([at_most(g, limit) for g in gradients], axis=0),
            "Each rank clips its own gradient, before they meet.",
        ),
        "always": (
            lambda gradients, limit: (
                np.mean(gradients, axis=0) * limit / np.linalg.norm(np.mean(gradients, axis=0))
            ),
            "A gradient that is short enough stays as it is.",
        ),
    },
    what="The gradient",
    says="The averaged gradient is clipped, as on one device.",
)


def dealt(g):
    """(hits, n): the rows of each rank in turn, the first ones again at the end."""
    k, n = int(g.integers(2, 6)), int(g.integers(7, 30))
    right = g.integers(0, 2, n)
    each = -(-n // k)
    return [[int(right[(r + i * k) % n]) for i in range(each)] for r in range(k)], n


formula(
    "count-once",
    "Which row is `hits[r][i]`? Only rows below `n` are new.",
    "Row `r + i * k`, for `k` ranks. From `n` on they are rows that have been counted.",
    cases=lambda g: [dealt(g) for _ in range(16)],
    right=lambda hits, n: sum(hits[row % len(hits)][row // len(hits)] for row in range(n)) / n,
    slips={
        "twice": (lambda hits, n: np.mean(hits), "Some rows are counted twice."),
        "too-few": (
            lambda hits, n: np.sum(hits) / n,
            "It is divided by n, but more than n rows are added.",
        ),
    },
    what="The accuracy",
    says="Each row counts once.",
)
