"""DistributedDataParallel"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, exercise

formula(
    "shard-loss",
    "DDP divides the sum of the ranks' gradients by the number of ranks. By what should it be "
    "divided?",
    "Begin with the sum over your shard. It will be divided by the world size: undo that, and "
    "divide by the global batch.",
    cases=lambda g: [
        (g.uniform(0, 3, size).tolist(), k, n)
        for size, k, n in ((4, 2, 7), (3, 2, 7), (8, 4, 32), (0, 2, 1), (1, 1, 1), (5, 3, 5))
    ],
    right=lambda losses, world_size, global_batch: sum(
        loss / (global_batch / world_size) for loss in losses
    ),
    slips={
        "mean-of-means": (
            lambda losses, k, n: np.mean(losses) if losses else 0,
            "Every rank counts the same in it.",
        ),
        "world-size": (
            lambda losses, k, n: sum(losses) / n,
            "DDP divides once more, by the number of ranks.",
        ),
    },
    what="The loss",
    says="The ranks' average is the mean over the global batch, with an idle rank as well.",
)


formula(
    "through-gpu-0",
    "Which of the four kinds of bytes does a step of DistributedDataParallel not have?",
    "Parameters and gradients belong to the other k - 1 GPUs each, inputs and outputs to their "
    "shards alone.",
    cases=lambda g: [(*(int(n) for n in g.integers(10**3, 10**9, 3)), k) for k in (1, 2, 4, 16)],
    right=lambda params, inputs, outputs, k: (
        2 * (k - 1) * params + (k - 1) / k * (inputs + 2 * outputs)
    ),
    slips={
        "forward": (
            lambda params, inputs, outputs, k: (k - 1) * params + (k - 1) / k * (inputs + outputs),
            "That is the forward pass alone.",
        ),
        "own-shard": (
            lambda params, inputs, outputs, k: 2 * (k - 1) * params + inputs + 2 * outputs,
            "GPU 0 has a shard of its own, which need not travel.",
        ),
        "all": (
            lambda params, inputs, outputs, k: 2 * k * params + inputs + 2 * outputs,
            "GPU 0 sends nothing to itself.",
        ),
    },
    what="The number of bytes",
    says="All of that goes through one GPU in each step.",
)


def batch_by_batch(n, batch_size, k, per_image, fixed) -> int:
    starts = range(0, n, batch_size)
    sizes = [len(np.array_split(range(min(batch_size, n - i)), k)[0]) for i in starts]
    return sum(fixed + per_image * size for size in sizes)


formula(
    "sixteen",
    "Whom does a step wait for? How many images does that device have, if 16 share 250?",
    "Round the largest share up. The last batch of an epoch is smaller, and has its own share.",
    cases=lambda g: [
        (n, 256, k, float(g.uniform(1e-4, 1e-3)), float(g.uniform(1e-3, 1e-2)))
        for k in (1, 2, 16)
        for n in (int(g.integers(1000, 3000)), 2560)
    ],
    right=batch_by_batch,
    slips={
        "fixed": (
            lambda n, batch_size, k, per_image, fixed: (
                batch_by_batch(n, batch_size, 1, per_image, fixed) / k
            ),
            "Not everything is shared by the devices.",
        ),
        "even": (
            lambda n, batch_size, k, per_image, fixed: (
                fixed * -(-n // batch_size) + per_image * n / k
            ),
            "A device computes whole images, and the step waits for the fullest.",
        ),
        "last": (
            lambda n, batch_size, k, per_image, fixed: (
                n // batch_size * (fixed + per_image * -(-batch_size // k))
            ),
            "The last batch of the epoch is missing.",
        ),
    },
    what="The time of an epoch",
    says="The time is right on one, two and sixteen devices.",
)


TEST_SETS = (13, 2)  # images; of two images the third rank has a copy alone


@exercise(
    "each-once",
    "At which place of the order is the first image of this rank, at which the second? Which "
    "places are copies?",
    "The i-th image of rank r is at place r + i·k, and is a copy from place n on. Add up over the "
    "ranks how many real ones were right, and divide by `n`.",
)
def one_accuracy(accuracy, g) -> str:
    """accuracy(predicted, labels, n): on every rank the share of n images that was right."""
    k, dealt, inputs = 3, [], [[] for _ in range(3)]
    for n in TEST_SETS:
        right = g.integers(0, 2, n)
        right[:2], right[-1] = 1, 0  # those that come twice are right, the last one is not
        labels = g.integers(0, 10, n)
        order = np.arange(k * -(-n // k)) % n
        dealt.append((right[order].reshape(-1, k).T, (np.arange(len(order)) < n).reshape(-1, k).T))
        for rank, of_rank in enumerate(inputs):
            places = order[rank::k]
            of_rank += [(labels + 1 - right)[places] % 10, labels[places]]
    ranks = in_processes(partial(_tested, accuracy), inputs)
    answers = [
        [
            float(array(result, f"{n} images: the accuracy on rank {rank}", ()))
            for n, result in zip(TEST_SETS, results)
        ]
        for rank, results in enumerate(ranks.results)
    ]

    def found_by(mistake):
        theirs = [[mistake(*hits_and_real, rank) for hits_and_real in dealt] for rank in range(k)]
        return np.allclose(answers, theirs, rtol=1e-6)

    if not found_by(lambda hits, real, rank: (hits * real).sum() / real.sum()):
        sizes = " and ".join(map(str, TEST_SETS))
        text = f"With {sizes} images on {k} ranks, the accuracy is not right."
        for reason, (mistakes, words) in MISTAKES.items():
            if any(map(found_by, mistakes)):
                raise Wrong(reason, f"{text} {words}")
        raise Wrong("value", text)
    most = ranks.most_numbers
    if most > 2:
        text = f"The accuracy is right, and a rank sends {most} numbers for it; one is enough."
        raise Wrong("bytes", text)
    return "Each image counts once, also where a rank has a copy alone, and all ranks know it."


def _tested(accuracy, *tensors):
    """In a rank: the accuracy on both sets."""
    sets = zip(tensors[::2], tensors[1::2], TEST_SETS)
    return [accuracy(predicted, labels, n) for predicted, labels, n in sets]


def _own(hits, real):
    """Each rank's accuracy on its own images, 0 without any."""
    return (hits * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)


# What a mistake gives on a rank, from (hits, are they real?, rank).
MISTAKES = {
    "copies": (
        [lambda hits, real, rank: hits.mean(), lambda hits, real, rank: hits.sum() / real.sum()],
        "Copies count in it.",
    ),
    "count": (
        [lambda hits, real, rank: (hits * real).sum(), lambda hits, real, rank: hits.sum()],
        "It is a number of images, and no share of them.",
    ),
    "mean-of-means": (
        [
            lambda hits, real, rank: _own(hits, real).mean(),
            lambda hits, real, rank: _own(hits, real)[real.any(axis=1)].mean(),
        ],
        "It is a mean of the ranks' accuracies, and one rank has more images than another.",
    ),
    "own": (
        [
            lambda hits, real, rank: hits[rank].mean(),
            lambda hits, real, rank: _own(hits, real)[rank],
            lambda hits, real, rank: (hits * real)[rank].sum() / real.sum(),
        ],
        "Each rank knows of its own images alone.",
    ),
}
