"""Accumulate and Save Messages"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "accumulate",
    "The loss of the whole batch is a mean over all its images. What does a micro-batch's mean "
    "divide by?",
    "Let each micro-batch give the sum over its images, and divide once, at the end.",
)
def like_the_large_batch(accumulate, g):
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
        found = array(accumulate(gradient, X, y, micro), "The gradient", (3,))
        if largest > micro:
            text = f"`gradient` got {largest} images at once; there is room for {micro}."
            raise Wrong("room", text)
        off = distance(found, expected)
        if off > 1e-9:
            times = float(found @ expected / (expected @ expected))
            scaled = distance(found, times * expected) < 1e-9
            raise Wrong(
                "scale" if scaled else "value",
                f"{n} images in micro-batches of {micro}: your gradient is {off:.1%} away from "
                f"that of the whole batch{f', it is {times:.3g} times as long' if scaled else ''}.",
            )
    return "The gradient is that of the whole batch, also where the last micro-batch is smaller."


def clipped_mean(gradients, sizes, limit):
    mean = np.sum(gradients, axis=0) / np.sum(sizes)
    length = np.sqrt(mean @ mean)
    return mean if length <= limit else mean / length * limit


def clipped_each(gradients, sizes, limit):
    scaled = [one * min(1, limit / np.linalg.norm(one)) for one in gradients]
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


def pieces(batch, k, room):
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
