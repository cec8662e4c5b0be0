"""Accumulate and Save Messages"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes, note
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "accumulate",
    "The loss of the whole batch is a mean over all its images. What does a micro-batch's mean "
    "divide by?",
    "Let each micro-batch give the sum over its images, and divide once, at the end.",
)
def like_the_large_batch(accumulate, g) -> str:
    """accumulate(gradient, X, y, micro): with ``gradient(X, y)`` the mean over what it is given."""
    for n, micro in ((8, 4), (7, 3), (5, 8), (9, 1)):
        X, y, w = g.normal(size=(n, 3)), g.normal(size=n), g.normal(size=3)
        largest = 0

        def gradient(X, y, w=w):
            nonlocal largest
            largest = max(largest, len(X))
            return 2 * X.T @ (X @ w - y) / len(X)

        expected = gradient(X, y)
        largest = 0
        answer = array(accumulate(gradient, X, y, micro), "The gradient", (3,))
        if largest > micro:
            text = f"`gradient` got {largest} images at once; there is room for {micro}."
            raise Wrong("room", text)
        off = distance(answer, expected)
        if off > 1e-9:
            times = float(answer @ expected / (expected @ expected))
            scaled = distance(answer, times * expected) < 1e-9
            raise Wrong(
                "scale" if scaled else "value",
                f"{n} images in micro-batches of {micro}: your gradient is {off:.1%} away from "
                f"that of the whole batch{f', it is {times:.3g} times as long' if scaled else ''}.",
            )
    return "The gradient is that of the whole batch, also where the last micro-batch is smaller."


def clipped_mean(gradients, sizes, limit) -> np.ndarray:
    mean = np.sum(gradients, axis=0) / np.sum(sizes)
    length = np.sqrt(mean @ mean)
    return mean if length <= limit else mean / length * limit


def clipped_each(gradients, sizes, limit) -> float:
    scaled = [gradient * min(1, limit / np.linalg.norm(gradient)) for gradient in gradients]
    return sum(scaled) / sum(sizes)


formula(
    "clip",
    "Of which gradient is the length limited: of that of the batch, or of that of a micro-batch?",
    "Add up and divide first. Then there is one gradient, and one length.",
    cases=lambda g: [
        ([g.normal(size=4) * size for size in sizes], sizes, limit)
        for sizes, limit in (([4, 4], 0.1), ([3, 5, 2], 0.2), ([4], 100.0), ([2, 2], 100.0))
    ],
    right=clipped_mean,
    slips={
        "each": (clipped_each, "Each micro-batch has been clipped for itself."),
        "unclipped": (
            lambda gradients, sizes, limit: sum(gradients) / sum(sizes),
            "Nothing has been clipped.",
        ),
        "longer": (
            lambda gradients, sizes, limit: limit * sum(gradients) / np.linalg.norm(sum(gradients)),
            "A short gradient has become longer.",
        ),
    },
    what="The gradient",
    says="The gradient of the batch is clipped once, and a short one stays as it is.",
)


def pieces(batch, k, room) -> list:
    left, count = max(len(part) for part in np.array_split(np.arange(batch), k)), 0
    while left > 0:
        last, left, count = min(left, room), left - room, count + 1
    return [count, last]


formula(
    "micro",
    "How many images has the device with the largest share? There may be one more than on another.",
    "Round up, twice: the share of the batch, and the number of micro-batches in it. The last one "
    "gets what the others leave.",
    cases=lambda g: [
        (batch, k, room)
        for k, room in ((8, 48), (3, 32), (1, 7))
        for batch in (int(g.integers(200, 999)), k * room * int(g.integers(1, 9)))
    ],
    right=pieces,
    slips={
        "whole": (
            lambda batch, k, room: [batch // k // room, room],
            "Images are left over that nobody computes.",
        ),
        "rest": (
            lambda batch, k, room: [-(-batch // k) // room + 1, -(-batch // k) % room],
            "Where the room divides the share, your last micro-batch is empty.",
        ),
    },
    what="The pair (number, last)",
    says="All images are computed, in as few micro-batches as there is room for.",
)


MICRO = 3  # rows for which there is room


@exercise(
    "send-once",
    "Which sum does a rank know by itself, without any message? What is then left to add up?",
    "Add up the gradients of all micro-batches of this rank first. One `dist.all_reduce` of that "
    "sum after the loop, and divide by `n`.",
)
def one_exchange(accumulate, g) -> str:
    """accumulate(gradient, X, y, micro, n): the mean gradient over the n rows of both ranks."""
    w, sizes = g.normal(size=4), g.permutation([8, 7]).tolist()  # three micro-batches each
    n = sum(sizes)
    data = [[g.normal(size=(rows, 4)), g.normal(size=rows)] for rows in sizes]
    sums = [
        [_gradient(w, X[i : i + MICRO], y[i : i + MICRO]) for i in range(0, len(X), MICRO)]
        for X, y in data
    ]
    copies = [[array.copy() for array in of_rank] for of_rank in data]
    ranks = in_processes(partial(_of_its_rows, accumulate, w, n), copies)
    right = np.sum([sum(of_rank) for of_rank in sums], axis=0) / n
    for rank, answer in enumerate(ranks.results):
        answer = array(answer, f"What rank {rank} returns", right.shape)
        off = distance(answer, right)
        if off > 1e-9:
            text = f"On rank {rank} the gradient is {off:.1%} off."
            for reason, (wrong, words) in _slips(sums, sizes, rank).items():
                if distance(answer, wrong) < 1e-9:
                    raise Wrong(reason, f"{text} {words}")
            raise Wrong("value", text)
    largest = max(call.numbers for call in ranks.calls[0] if call.name == "gradient")
    if largest > MICRO:
        raise Wrong("room", f"`gradient` got {largest} rows at once; there is room for {MICRO}.")
    if max(ranks.messages) > 1:
        text = f"The gradient is right, and a rank starts {max(ranks.messages)} messages for it."
        raise Wrong("messages", f"{text} One is enough.")
    return "Both processes have the gradient of all rows, after one message."


def _gradient(w, X, y):
    """The sum over the rows of the gradients of their squared errors."""
    return 2 * X.T @ (X @ w - y)


def _of_its_rows(accumulate, w, n, X, y):
    """In a rank: the answer gets a gradient that notes how many rows it is given."""

    def gradient(X, y):
        note("gradient", len(X))
        return _gradient(X.new_tensor(w), X, y)

    return accumulate(gradient, X, y, MICRO, n)


def _slips(sums, sizes, rank):
    """{reason: (what such a mistake gives on this rank, words)}"""
    n, own, both = sum(sizes), sum(sums[rank]), np.sum([sum(of_rank) for of_rank in sums], axis=0)
    again = 0
    for together in zip(*sums):
        again = sum(again + term for term in together)
    means = [
        np.mean([s / size for s, size in zip(of_rank, _rows(of))], axis=0)
        for of_rank, of in zip(sums, sizes)
    ]
    return {
        "sum": (both, "It is not divided by the number of rows."),
        "twice": (both / n / 2, "It is divided by the number of ranks, too."),
        "own": (own / n, "It is made of the rows of this rank alone."),
        "last": (
            sum(of_rank[-1] for of_rank in sums) / n,
            "Only the last micro-batches are in it.",
        ),
        "again": (again / n, "What was added up over the ranks is added up over them again."),
        "means": (np.mean(means, axis=0), "Rows of a small micro-batch count more than others."),
    }


def _rows(size):
    """How many rows the micro-batches of a rank have."""
    return [min(MICRO, size - start) for start in range(0, size, MICRO)]
