"""DistributedDataParallel"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula

formula(
    "shard-loss",
    "DDP divides the sum of the ranks' gradients by the number of ranks. By what should it be "
    "divided?",
    "Begin with the sum over your shard. It will be divided by the world size: undo that, and "
    "divide by the global batch.",
    cases=lambda g: [
        (g.uniform(0, 3, size).tolist(), k, n) for size, k, n in
        ((4, 2, 7), (3, 2, 7), (8, 4, 32), (0, 2, 1), (1, 1, 1), (5, 3, 5))
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
)  # fmt: skip


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


def batch_by_batch(n, batch_size, k, per_image, fixed):
    starts = range(0, n, batch_size)
    sizes = [len(np.array_split(range(min(batch_size, n - i)), k)[0]) for i in starts]
    return sum(fixed + per_image * size for size in sizes)


formula(
    "sixteen",
    "Whom does a step wait for? How many images does that device have, if 16 share 250?",
    "Round the largest share up. The last batch of an epoch is smaller, and has its own share.",
    cases=lambda g: [
        (n, 256, k, float(g.uniform(1e-4, 1e-3)), float(g.uniform(1e-3, 1e-2)))
        for k in (1, 2, 16) for n in (int(g.integers(1000, 3000)), 2560)
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
)  # fmt: skip
