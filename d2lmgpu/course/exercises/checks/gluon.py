"""Gluon's Trainer"""

import numpy as np

from d2lmgpu.course.exercises.checks.overlap import simulate
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, distance, exercise


def dealt(g, sizes) -> tuple[list[np.ndarray], list]:
    labels = [g.integers(0, 3, size) for size in sizes]
    return [np.where(g.random(len(y)) < 0.5, y, y + 1) for y in labels], labels


formula(
    "accuracy",
    "What can be added up over the devices: accuracies, or numbers of images?",
    "Two sums: images that were right, and images. One division, at the end.",
    cases=lambda g: [dealt(g, sizes) for sizes in ([5], [8, 3], [6, 0], [9, 4, 2, 5])],
    right=lambda predicted, labels: np.mean(np.concatenate(predicted) == np.concatenate(labels)),
    slips={
        "mean-of-means": (
            lambda predicted, labels: np.mean(
                [np.mean(p == y) for p, y in zip(predicted, labels) if len(y)]
            ),
            "Every device counts the same in it.",
        ),
        "largest": (
            lambda predicted, labels: (
                sum(map(np.sum, map(np.equal, predicted, labels)))
                / (len(labels) * max(map(len, labels)))
            ),
            "Not every device has as many images as the first.",
        ),
    },
    what="The accuracy",
    says="Every image counts once, with an idle device as well.",
)

formula(
    "waitall",
    "Draw two rows, host and device, for three steps: once with the wait, once without it.",
    "Without the wait the longer one sets the pace. The first batch still has to be loaded, and "
    "the last one computed.",
    cases=lambda g: [
        (int(g.integers(2, 20)), *g.integers(1, 9, 2).tolist(), waits)
        for waits in (True, False)
        for _ in range(4)
    ],
    right=lambda steps, load, compute, waits: simulate(
        [load] * steps, [compute] * steps, 1 if waits else steps
    ),
    slips={
        "serial": (
            lambda steps, load, compute, waits: steps * (load + compute),
            "Without the wait the two overlap.",
        ),
        "ends": (
            lambda steps, load, compute, waits: (
                steps * (load + compute if waits else max(load, compute))
            ),
            "In the first step the device waits for the host, and in the last one nothing is "
            "loaded.",
        ),
    },
    what="The time",
    says="The time is that of the simulated timeline, with the wait and without it.",
)


@exercise(
    "trainer",
    "One device has three images, the other has one. How much does each image count?",
    "`gradient` gives a sum. Add the sums of all devices, and divide once, by all images.",
)
def like_the_batch(step, g) -> str:
    """step(w, gradient, shards, lr): w in place, gradient(w, X, y) is the sum over images."""
    for sizes in ((3, 1), (4, 4), (5, 0, 2)):
        w, lr = g.normal(size=3), float(g.uniform(0.01, 0.1))
        shards = [(g.normal(size=(size, 3)), g.normal(size=size)) for size in sizes]
        sums = [X.T @ (X @ w - y) for X, y in shards]
        before, right = w.copy(), w - lr * sum(sums) / sum(sizes)
        step(w, lambda w, X, y: X.T @ (X @ w - y), shards, lr)
        off = distance(w, right)
        if off < 1e-9:
            continue
        if np.array_equal(w, before):
            raise Wrong("rebinding", "The array `w` is what it was.")
        means = [total / size for total, size in zip(sums, sizes, strict=True) if size]
        text = f"{sizes} images: the weights are {off:.1%} off."
        if distance(w, before - lr * np.mean(means, axis=0)) < 1e-9:
            raise Wrong("mean-of-means", f"{text} Every device counts the same.")
        raise Wrong("value", text)
    return "The step is that of the whole batch, for uneven shards and an idle device."
