"""What Fits on a GPU?"""

from d2lmgpu.course.exercises.formulas import formula

STATES = {"sgd": 0, "momentum": 1, "adam": 2}

formula(
    "per-parameter",
    "Parameters, gradients, the optimiser's numbers: count the bytes of each, one after the other.",
    "With 16 bits, parameters and gradients take two bytes each, and a copy of the parameters in "
    "32 bits is kept besides. The optimiser's numbers stay in 32 bits.",
    cases=lambda g: [
        (int(g.integers(10**6, 10**9)), optimizer, mixed)
        for optimizer in STATES for mixed in (False, True)
    ],
    right=lambda parameters, optimizer, mixed: sum(
        size * parameters for size in [2, 2, 4][: 3 * mixed] + [4, 4][: 2 * (not mixed)]
        + [4] * STATES[optimizer]
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
)  # fmt: skip


def tried(b1, peak1, b2, peak2, memory):
    """One batch after the other, until it does not fit."""
    batch_size, slope = 0, (peak2 - peak1) / (b2 - b1)
    while peak1 + slope * (batch_size + 1 - b1) <= memory:
        batch_size += 1
    return batch_size


def two_peaks(g):
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


def cheapest(blocks, edge, inside):
    """All sizes of a group, tried."""
    return min(range(1, blocks + 1), key=lambda s: (-(-blocks // s) * edge + s * inside, s))


formula(
    "recompute",
    "With groups of s blocks, how many edges are kept, and how much is inside of the one that is "
    "being recomputed?",
    "Try all sizes from 1 to the number of blocks. The last group may be smaller: round up.",
    cases=lambda g: [
        (int(g.integers(8, 60)), *map(int, g.integers(1, 20, 2) * times))
        for times in ([1, 1], [1, 1], [1, 1], [1, 200], [200, 1])
    ],
    right=cheapest,
    slips={
        "root": (
            lambda blocks, edge, inside: round(blocks**0.5),
            "An edge and the inside of a block are not equally large.",
        ),
        "one": (lambda blocks, edge, inside: 1, "Then every edge is kept."),
    },
    what="The size of a group",
    says="No other size needs less.",
)  # fmt: skip
