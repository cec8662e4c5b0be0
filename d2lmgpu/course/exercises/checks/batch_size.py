"""Batch Size and Learning Rate"""

from collections.abc import Iterator

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "warm-up",
    "What is the learning rate in the very first update, and in the first one after the warm-up?",
    "A straight line from the rate of the small batch to that rate times k; flat behind it.",
)
def rates(lr_at, g) -> str:
    """lr_at(update, base, k, warmup): the rate rises from base to k times base in ``warmup``."""
    for k in (1, 2, 8):
        base, warmup = float(g.uniform(0.01, 0.5)), int(g.integers(2, 50))
        for update in range(warmup + 3):
            right = np.interp(update, [0, warmup], [base, k * base])
            answer = float(array(lr_at(update, base, k, warmup), "The rate", ()))
            if abs(answer - right) > 1e-9:
                where = "start" if update == 0 else "rise" if update < warmup else "end"
                text = f"k = {k}, update {update} of {warmup}: {answer:.4g} is off"
                raise Wrong(where, f"{text} by {answer - right:+.2g}.")
    return "The rate rises in a straight line and stays."


formula(
    "updates",
    "How many batches has an epoch, if the last one may be smaller?",
    "The batch is k times as large: so there are fewer updates, and by the linear rule each is k "
    "times as long.",
    cases=lambda g: [
        (int(g.integers(1000, 9999)), int(g.choice([32, 64, 100])), float(g.uniform(0.01, 1)), k, 3)
        for k in (1, 2, 16)
    ],
    right=lambda n, batch_size, lr, k, epochs: [
        epochs * len(range(0, n, k * batch_size)),
        sum([lr] * k),
    ],
    slips={
        "batch": (
            lambda n, b, lr, k, epochs: [epochs * -(-n // b), k * lr],
            "These are the updates of one device.",
        ),
        "drop": (
            lambda n, b, lr, k, epochs: [epochs * (n // (k * b)), k * lr],
            "The last batch of an epoch is small, and it counts.",
        ),
        "rate": (
            lambda n, b, lr, k, epochs: [epochs * -(-n // (k * b)), lr],
            "The learning rate has not grown with the batch.",
        ),
    },
    what="The pair (updates, lr)",
    says="Updates and learning rate are right from one to sixteen devices.",
)


def noise_over_signal(small, large, b_small, b_large) -> float:
    signal, noise = np.linalg.solve([[1, 1 / b_small], [1, 1 / b_large]], [small, large])
    return noise / signal


def two_measurements(g) -> Iterator[tuple]:
    for b_small, b_large in ((8, 64), (1, 2), (32, 1024)):
        signal, noise = g.uniform(0.5, 2, 2)
        yield signal + noise / b_small, signal + noise / b_large, b_small, b_large


formula(
    "noise-scale",
    "Two equations, small = G + S/b_small and large = G + S/b_large, and two unknowns.",
    "Subtract them: G drops out. With S you have G, and the answer is S/G.",
    cases=lambda g: [tuple(map(float, case)) for case in two_measurements(g)],
    right=noise_over_signal,
    slips={
        "signal": (
            lambda small, large, b, c: (small - large) / (1 / b - 1 / c) / large,
            "The longer batch still has noise in it.",
        ),
        "noise": (
            lambda small, large, b, c: (
                (small - large) / (large - (small - large) / (1 / b - 1 / c) / c)
            ),
            "That is the noise of one of the batches, not of one image.",
        ),
    },
    what="The noise scale",
    says="The scale is right for small and large batches.",
    tolerance=1e-7,
)
