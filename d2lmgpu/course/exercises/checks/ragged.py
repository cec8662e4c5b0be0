"""Ragged Batches and Batch Norm"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula


def by_squares(means, variances, sizes) -> list:
    mean = np.dot(sizes, means) / np.sum(sizes)
    square = np.dot(sizes, np.add(variances, np.square(means))) / np.sum(sizes)
    return [mean, square - mean**2]


formula(
    "batch-norm",
    "Two shards whose images are all equal, but not from shard to shard: what is each variance, "
    "and what is that of the batch?",
    "The mean of the squares of a shard is its variance plus the square of its mean. Means can be "
    "combined by the sizes.",
    cases=lambda g: [
        (g.normal(size=k).tolist(), g.uniform(0.1, 2, k).tolist(), g.integers(1, 9, k).tolist())
        for k in (1, 2, 5)
    ],
    right=by_squares,
    slips={
        "within": (
            lambda means, variances, sizes: [
                np.average(means, weights=sizes),
                np.average(variances, weights=sizes),
            ],
            "The shards' means differ, and that is a part of the variance.",
        ),
        "mean-of-means": (
            lambda means, variances, sizes: [np.mean(means), np.mean(variances)],
            "Every shard counts the same in it.",
        ),
    },
    what="The pair (mean, variance)",
    says="Mean and variance are those of the whole batch.",
)

formula(
    "idle-ranks",
    "How many images has the last batch? How many ranks get one of them?",
    "A last batch of `n % batch_size` images, or a whole one if nothing is left, gives an image to "
    "as many ranks at most.",
    cases=lambda g: (
        [(int(g.integers(1, 200)), batch_size, k) for k in (2, 5, 8) for batch_size in (8, 25)]
        + [(64, 8, 16), (65, 8, 4), (1, 8, 4)]
    ),
    right=lambda n, batch_size, k: max(0, k - ((n - 1) % batch_size + 1)),
    slips={
        "remainder": (
            lambda n, batch_size, k: max(0, k - n % batch_size),
            "If the batches divide the images, the last one is a whole batch.",
        ),
        "negative": (
            lambda n, batch_size, k: k - ((n - 1) % batch_size + 1),
            "With more images than ranks nobody is idle.",
        ),
    },
    what="The number of idle ranks",
    says="That many ranks get no image in the last batch.",
)

formula(
    "joined",
    "How many ranks still make the first step, the second, the third? All gradients are 1.",
    "A rank that is done answers with zeros, and the mean is still over all ranks.",
    cases=lambda g: (
        [(g.integers(0, 9, k).tolist(), float(g.uniform(0.1, 1))) for k in (1, 2, 5)]
        + [([2, 1], 1.0)]
    ),
    right=lambda steps, lr: -lr * sum(steps) / len(steps),
    slips={
        "all": (lambda steps, lr: -lr * max(steps), "Later steps have fewer gradients."),
        "first": (
            lambda steps, lr: -lr * min(steps),
            "The ranks that are not done go on.",
        ),
    },
    what="The weight",
    says="The mean over all ranks counts each step of each rank once.",
)
