"""What Fits on a GPU?"""

from collections.abc import Iterator
from itertools import pairwise

from d2lmgpu.course.exercises.formulas import formula

STATES = {"sgd": 0, "momentum": 1, "adam": 2}

formula(
    "per-parameter",
    "Parameters, gradients, the optimiser's numbers: count the bytes of each, one after the other.",
    "With 16 bits, parameters and gradients take two bytes each, and a copy of the parameters in "
    "32 bits is kept besides. The optimiser's numbers stay in 32 bits.",
    cases=lambda g: [
        (int(g.integers(10**6, 10**9)), optimizer, mixed)
        for optimizer in STATES
        for mixed in (False, True)
    ],
    right=lambda parameters, optimizer, mixed: sum(
        size * parameters
        for size in [2, 2, 4][: 3 * mixed] + [4, 4][: 2 * (not mixed)] + [4] * STATES[optimizer]
    ),
    slips={
        "copy": (
            lambda p, optimizer, mixed: (4 if mixed else 8) * p + 4 * STATES[optimizer] * p,
            "With 16 bits there is a copy of the parameters in 32.",
        ),
        "gradients": (
            lambda p, optimizer, mixed: (6 if mixed else 4) * p + 4 * STATES[optimizer] * p,
            "The gradients need memory as well.",
        ),
        "state": (
            lambda p, optimizer, mixed: 8 * p + (2 if mixed else 4) * STATES[optimizer] * p,
            "The optimiser's numbers stay in 32 bits.",
        ),
    },
    what="The number of bytes",
    says="The bytes are right for three optimisers, in 32 and in 16 bits.",
)


def tried(b1, peak1, b2, peak2, memory) -> int:
    """One batch after the other, until it does not fit."""
    batch_size, slope = 0, (peak2 - peak1) / (b2 - b1)
    while peak1 + slope * (batch_size + 1 - b1) <= memory:
        batch_size += 1
    return batch_size


def two_peaks(g) -> Iterator[tuple[int, int, int, int, int]]:
    for room in (0.5, 3.0, 40.0):
        fixed, image = int(g.integers(200, 400)), int(g.integers(5, 20))
        memory = int(fixed + image * room * g.integers(2, 9))
        yield 4, fixed + 4 * image, 12, fixed + 12 * image, memory
    yield 4, fixed + 4 * image, 12, fixed + 12 * image, fixed - 3 * image


formula(
    "largest-batch",
    "What does one more image cost? And what is needed with no image at all?",
    "The peaks lie on a straight line. Where it passes the memory, round down; below the first "
    "image the answer is 0.",
    cases=lambda g: [tuple(case) for case in two_peaks(g)],
    right=tried,
    slips={
        "proportional": (
            lambda b1, peak1, b2, peak2, memory: memory * b2 // peak2,
            "Parameters need memory whatever the batch.",
        ),
        "fraction": (
            lambda b1, peak1, b2, peak2, memory: max(
                0, (memory - peak1) * (b2 - b1) / (peak2 - peak1) + b1
            ),
            "A part of an image is none.",
        ),
        "negative": (
            lambda b1, peak1, b2, peak2, memory: (
                (memory - peak1) * (b2 - b1) // (peak2 - peak1) + b1
            ),
            "Where not even one image fits, it is 0, and not less.",
        ),
        "up": (
            lambda b1, peak1, b2, peak2, memory: tried(b1, peak1, b2, peak2, memory) + 1,
            "With one image less it would fit.",
        ),
    },
    what="The batch",
    says="The batch fits, and one more image would not.",
)


def lives(widths, batch_size) -> int:
    """Storage after storage: the input, the output of each ReLU, and what the loss keeps."""
    storages = [4 * width for width in widths[:-1]] + [4 * widths[-1], 8]
    return batch_size * sum(storages) + 4


formula(
    "kept",
    "What does each layer's backward pass read? The gradient of a weight needs the layer's input.",
    "The input and the output of each ReLU, which is the next layer's input as well. Then what the "
    "loss keeps: the logarithms, the labels and one number.",
    cases=lambda g: [
        ([int(n) for n in g.integers(3, 3000, layers)], int(g.integers(2, 300)))
        for layers in (2, 3, 6)
    ],
    right=lives,
    slips={
        "twice": (
            lambda widths, n: lives(widths, n) + 4 * n * sum(widths[1:-1]),
            "The output of a ReLU is the input of the next layer: one storage.",
        ),
        "input": (
            lambda widths, n: lives(widths, n) - 4 * n * widths[0],
            "The first layer's input waits, too.",
        ),
        "labels": (
            lambda widths, n: lives(widths, n) - 8 * n,
            "The loss needs the labels, to know which class is right.",
        ),
        "last": (
            lambda widths, n: lives(widths, n) - 4,
            "One number is kept for the whole batch.",
        ),
        "parameters": (
            lambda widths, n: lives(widths, n) + 4 * sum(a * b for a, b in pairwise(widths)),
            "Parameters are no activations: they are there anyway.",
        ),
    },
    what="The number of bytes",
    says="The bytes are those that autograd puts aside.",
)
