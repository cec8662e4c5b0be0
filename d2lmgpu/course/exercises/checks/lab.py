"""The Training Lab"""

from statistics import median

import numpy as np

from d2lmgpu.course.exercises.formulas import formula


def of_medians(one, many, k) -> list:
    speedup = median(one) / median(many)
    return [speedup, speedup / k]


formula(
    "speedup",
    "A single slow run, with a backup beside it, should not change the result much.",
    "Take the median of each list. The speedup says how many times as fast, the efficiency divides "
    "it by the number of devices.",
    cases=lambda g: [
        ([*g.uniform(1, 2, 4), 9.0], [*g.uniform(0.5, 1, 4), float(g.uniform(0.3, 4))], k)
        for k in (1, 2, 8)
    ],
    right=of_medians,
    slips={
        "mean": (
            lambda one, many, k: [np.mean(one) / np.mean(many), np.mean(one) / np.mean(many) / k],
            "One slow run weighs too much in it.",
        ),
        "inverted": (
            lambda one, many, k: [median(many) / median(one), median(many) / median(one) / k],
            "Faster should be more.",
        ),
        "best": (
            lambda one, many, k: [min(one) / min(many), min(one) / min(many) / k],
            "The best run is luck.",
        ),
    },
    what="The pair (speedup, efficiency)",
    says="Speedup and efficiency go by the medians.",
)


def searched(fixed, per_image, k, efficiency) -> int:
    """The first batch that is large enough, in steps of k images."""
    batch_size = k
    while (fixed + per_image * batch_size) < efficiency * (k * fixed + per_image * batch_size):
        batch_size += k
    return batch_size


def bound(fixed, per_image, k, efficiency) -> float:
    return fixed * (k * efficiency - 1) / (per_image * (1 - efficiency))


formula(
    "smallest-batch",
    "Write down the time of a step on one device and on k. The efficiency is their ratio, over k.",
    "Solve for the batch, and round up to a multiple of k.",
    cases=lambda g: [
        (float(g.uniform(1e-3, 5e-3)), float(g.uniform(2e-5, 2e-4)), k, efficiency)
        for k in (2, 4, 8)
        for efficiency in (0.8, 0.9)
    ],
    right=searched,
    slips={
        "share": (
            lambda fixed, per_image, k, e: searched(fixed, per_image, k, e) / k,
            "That is one device's part of the batch.",
        ),
        "fraction": (bound, "The batch is a number of images, and a multiple of k."),
    },
    what="The batch",
    says="The batch is the smallest that reaches the efficiency.",
)

formula(
    "rate",
    "One epoch takes 1 s and the next, of as many images, 9 s. How many images a second are that?",
    "All images, over all seconds.",
    cases=lambda g: [
        (g.integers(500, 900, n).tolist(), g.uniform(0.1, 5, n).tolist()) for n in (2, 3, 8)
    ],
    right=lambda images, seconds: sum(images[1:]) / sum(seconds[1:]),
    slips={
        "mean-of-rates": (
            lambda images, seconds: np.mean(np.array(images[1:]) / np.array(seconds[1:])),
            "A short epoch counts as much in it as a long one.",
        ),
        "warm-up": (
            lambda images, seconds: sum(images) / sum(seconds),
            "The first epoch is there to warm up.",
        ),
    },
    what="The rate",
    says="The rate is right, and the first epoch does not count.",
)
