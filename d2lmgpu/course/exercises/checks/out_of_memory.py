"""Out of Memory"""

from collections.abc import Iterator

from d2lmgpu.course.exercises.formulas import formula


def moments(weights, kept) -> Iterator[int]:
    """The bytes at the end of the forward pass, and when each gradient has been made."""
    yield sum(weights) + sum(kept)
    for i in reversed(range(len(weights))):
        yield sum(weights) + sum(kept[: i + 1]) + sum(weights[i:])


def networks(g) -> Iterator[tuple[list[int], list[int]]]:
    """Lists of sizes: activations first, parameters last, as in a ResNet; the reverse; alike."""
    for low, high in ((10, 400), (400, 10), (90, 110), (5, 2000)):
        layers = int(g.integers(4, 9))
        weights = [int(g.integers(1, 9) + low + (high - low) * i // layers) for i in range(layers)]
        kept = [int(g.integers(1, 9) + high + (low - high) * i // layers) for i in range(layers)]
        yield weights, kept
    yield [5 * size for size in weights], kept
    yield weights, [5 * size for size in kept]


formula(
    "cleared-first",
    "What is there when the forward pass ends? What comes and what goes in each step of the "
    "backward pass?",
    "Go through the layers from the last to the first. Add the gradient, look whether this is the "
    "highest so far, and only then subtract what the layer kept.",
    cases=lambda g: [*networks(g)],
    right=lambda weights, kept: max(moments(weights, kept)),
    slips={
        "all": (
            lambda weights, kept: 2 * sum(weights) + sum(kept),
            "Gradients come while activations go: never are all of both there.",
        ),
        "either": (
            lambda weights, kept: sum(weights) + max(sum(weights), sum(kept)),
            "In between some gradients are there and some activations, which can be more than all "
            "of one.",
        ),
        "front": (
            lambda weights, kept: max(moments(weights[::-1], kept[::-1])),
            "The backward pass begins with the last layer.",
        ),
        "dropped": (
            lambda weights, kept: max(
                sum(weights) + sum(kept),
                *(
                    moment - size
                    for moment, size in zip(
                        [*moments(weights, kept)][1:], reversed(kept), strict=True
                    )
                ),
            ),
            "A layer's activations are still there when its gradient is made.",
        ),
        "parameters": (
            lambda weights, kept: max(moments(weights, kept)) - sum(weights),
            "The parameters themselves are there all the time.",
        ),
    },
    what="The peak",
    says="The peak is right, wherever the parameters and the activations are.",
)


def cheapest(blocks, edge, inside) -> int:
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
)


formula(
    "copies",
    "How many bytes are kept without autocast for n examples, and how many with it?",
    "Four bytes a number against two, and two for each weight whatever the batch. Less, not equal.",
    cases=lambda g: [
        (int(rest + whole * numbers), int(numbers))
        for numbers, whole, rest in (
            (g.integers(500, 900), g.integers(5, 90), 0),
            (g.integers(500, 900), g.integers(5, 90), g.integers(10, 240)),
            (g.integers(500, 900), g.integers(5, 90), g.integers(260, 490)),
            (g.integers(500, 900), 0, g.integers(1, 400)),
        )
    ],
    right=lambda parameters, numbers: next(
        n for n in range(1, parameters + 2) if 2 * n * numbers + 2 * parameters < 4 * n * numbers
    ),
    slips={
        "equal": (
            lambda parameters, numbers: -(-parameters // numbers),
            "With exactly so many, as much is kept as without.",
        ),
        "fraction": (
            lambda parameters, numbers: parameters / numbers,
            "A batch is a whole number of examples.",
        ),
        "four": (
            lambda parameters, numbers: 2 * parameters // numbers + 1,
            "A copy has 16 bits, two bytes a weight.",
        ),
        "all": (
            lambda parameters, numbers: parameters // (2 * numbers) + 1,
            "With autocast the numbers of an example are still kept, in two bytes each.",
        ),
    },
    what="The batch",
    says="With one example less, autocast would not save.",
)
