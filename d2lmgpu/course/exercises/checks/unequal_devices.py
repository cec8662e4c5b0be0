"""Unequal Devices: a Fast and a Slow GPU"""

from itertools import combinations

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise
from d2lmgpu.machine.checks import is_whole


@exercise(
    "split",
    "Write down the exact share of every device first. It need not be a whole number.",
    "Cut at the *cumulated* shares, rounded: the last cut is then always the number of images.",
)
def shares(split, g) -> str:
    """split(n, weights): how many of n images each device gets."""
    for k in (1, 2, 3, 7):
        for n in (0, 1, 5, 256):
            weights = g.integers(1, 9, k).astype(float)
            weights[0] *= g.choice([1, 10])
            sizes = split(n, weights.tolist())
            shown = f"{n} images, weights {weights.astype(int).tolist()}"
            answer = array(sizes, "The list of sizes", (k,))
            if not all(is_whole(int(size)) and size == int(size) for size in answer):
                raise Wrong("whole", f"{shown}: {list(sizes)} are not all whole numbers from 0 up.")
            if answer.sum() != n:
                raise Wrong("sum", f"{shown}: you hand out {answer.sum():.0f} images.")
            off = np.abs(answer - n * weights / weights.sum()).max()
            if off >= 1 + 1e-9:
                raise Wrong("share", f"{shown}: one device is {off:.1f} images off its share.")
    return "Every image is handed out once, and no device is a whole image off its share."


@exercise("split")
def idle(split, g) -> str:
    n = int(g.integers(5, 50))
    sizes = list(split(n, [1, 0, 2]))
    if sizes[1] != 0:
        raise Wrong(
            "zero", f"{n} images, weights [1, 0, 2]: the device of weight 0 got {sizes[1]}."
        )
    return "A device of weight 0 gets nothing."


def best_of_all(n, speeds, exchange) -> float:
    """Every choice of devices, tried."""
    choices = [c for size in range(1, len(speeds) + 1) for c in combinations(speeds, size)]
    return min(n / sum(choice) + exchange * (len(choice) > 1) for choice in choices)


formula(
    "worth",
    "How long does the fastest device take on its own? And all of them together, with the "
    "exchange?",
    "With the exchange paid for, every further device helps. So there are two candidates.",
    cases=lambda g: [
        (n, g.integers(low, 90, k).astype(float).tolist(), exchange)
        for n in (64, 256)
        for k, low in ((1, 50), (2, 1), (4, 50))
        for exchange in (0.01, 3.0)
    ],
    right=best_of_all,
    slips={
        "all": (
            lambda n, speeds, exchange: n / sum(speeds) + exchange * (len(speeds) > 1),
            "Not every device is worth its exchange.",
        ),
        "alone": (lambda n, speeds, exchange: n / max(speeds), "In it nobody ever helps."),
        "one": (
            lambda n, speeds, exchange: min(n / max(speeds), n / sum(speeds)),
            "Helping costs an exchange.",
        ),
    },
    what="The time",
    says="No choice of devices is faster.",
)


def shares_of(speeds) -> list[float]:
    return [float(speed / np.sum(speeds)) for speed in speeds]


formula(
    "balance",
    "One device had 200 images and the other 50, and both took a second. Which one is faster?",
    "A speed is images over seconds.",
    cases=lambda g: [
        (g.integers(1, 200, k).tolist(), g.uniform(0.1, 2, k).tolist()) for k in (1, 2, 4)
    ],
    right=lambda sizes, seconds: shares_of(np.array(sizes) / np.array(seconds)),
    slips={
        "size": (
            lambda sizes, seconds: shares_of(1 / np.array(seconds)),
            "The devices had shares of different sizes when they were timed.",
        ),
        "inverted": (
            lambda sizes, seconds: shares_of(np.array(seconds) / np.array(sizes)),
            "The slowest device gets the most.",
        ),
    },
    what="The list of weights",
    says="The weights are in proportion to the measured speeds.",
)
