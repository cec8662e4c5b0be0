"""Exercises on what is added up and divided by what."""

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "combine",
    "Three images on one device and one on another: how much does each image count in your result?",
    "Turn each mean back into the sum that it came from. What is the mean of all images then?",
)
def gradients_of_shards(combine, g):
    """combine(means, sizes): the mean over the whole batch."""
    for k in (1, 2, 3, 5):
        sizes = g.integers(1, 9, k).tolist()
        images = [g.normal(size=(size, 4)) for size in sizes]
        means = [shard.mean(axis=0) for shard in images]
        given = [mean.copy() for mean in means]
        found = array(combine(given, list(sizes)), "The gradient", (4,))
        off = distance(found, np.concatenate(images).mean(axis=0))
        if off > 1e-9:
            equal = distance(found, np.mean(means, axis=0)) < 1e-9
            reason = "mean-of-means" if equal else "value"
            raise Wrong(
                reason,
                f"Shards of {sizes} images: your gradient is {off:.1%} away from that of the whole "
                f"batch.{' Every shard counts the same in it.' if equal and k > 1 else ''}",
            )
        if any(not np.array_equal(a, b) for a, b in zip(given, means, strict=True)):
            raise Wrong("changed", "The gradients that were given have been changed.")
    return "The gradient is that of the whole batch, for one to five uneven shards."


@exercise(
    "combine",
)
def devices_without_data(combine, g):
    images = g.normal(size=(3, 4))
    # The mean of no images is no number: it must not count.
    means = [images.mean(axis=0), np.full(4, np.nan)]
    found = np.asarray(combine(means, [3, 0]), dtype=np.float64)
    if not np.isfinite(found).all():
        raise Wrong("idle", "A device without images has no mean (NaN), and it has spread.")
    if distance(found, images.mean(axis=0)) > 1e-9:
        raise Wrong("idle", "A device without images changes the result.")
    return "A device without images changes nothing."


@exercise(
    "allreduce",
    "Which object do the devices hold before the call, and which after it? Look at `is`.",
    "Add everything up on one device first. Then write the sum *into* the arrays that are there.",
)
def in_place(allreduce, g):
    """allreduce(data): each of the arrays holds the sum afterwards."""
    for k in (1, 2, 4):
        data = [g.normal(size=(3, 2)) for _ in range(k)]
        before, total = list(data), np.sum(data, axis=0)
        allreduce(data)
        for rank, kept in enumerate(before):
            off = distance(kept, total)
            if off > 1e-9:
                rebound = any(distance(np.asarray(one), total) < 1e-9 for one in data)
                reason = "rebinding" if rebound and data[rank] is not kept else "value"
                text = f"Device {rank} of {k}: its array is {off:.1%} away from the sum."
                if reason == "rebinding":
                    text += " The list holds another array now; the device's own was not written."
                raise Wrong(reason, text)
            if data[rank] is not kept:
                raise Wrong("rebinding", f"The list holds another array for device {rank}.")
        if k > 1 and any(np.shares_memory(data[0], other) for other in data[1:]):
            raise Wrong("aliasing", "Two devices hold the same memory.")
    return "Each device's own array holds the sum, for one, two and four devices."


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
