"""Data Parallelism in NumPy"""

import numpy as np

from d2lmgpu.collectives.schedules import plan
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "combine",
    "Three images on one device and one on another: how much does each image count in your result?",
    "Turn each mean back into the sum that it came from. What is the mean of all images then?",
)
def gradients_of_shards(combine, g) -> str:
    """combine(means, sizes): the mean over the whole batch."""
    for k in (1, 2, 3, 5):
        sizes = g.integers(1, 9, k).tolist()
        images = [g.normal(size=(size, 4)) for size in sizes]
        means = [shard.mean(axis=0) for shard in images]
        copies = [mean.copy() for mean in means]
        answer = array(combine(copies, list(sizes)), "The gradient", (4,))
        off = distance(answer, np.concatenate(images).mean(axis=0))
        if off > 1e-9:
            equal = distance(answer, np.mean(means, axis=0)) < 1e-9
            reason = "mean-of-means" if equal else "value"
            raise Wrong(
                reason,
                f"Shards of {sizes} images: your gradient is {off:.1%} away from that of the whole "
                f"batch.{' Every shard counts the same in it.' if equal and k > 1 else ''}",
            )
        if any(not np.array_equal(a, b) for a, b in zip(copies, means, strict=True)):
            raise Wrong("changed", "The gradients that were given have been changed.")
    return "The gradient is that of the whole batch, for one to five uneven shards."


@exercise(
    "combine",
)
def devices_without_data(combine, g) -> str:
    images = g.normal(size=(3, 4))
    # The mean of no images is no number: it must not count.
    means = [images.mean(axis=0), np.full(4, np.nan)]
    answer = np.asarray(combine(means, [3, 0]), dtype=np.float64)
    if not np.isfinite(answer).all():
        raise Wrong("idle", "A device without images has no mean (NaN), and it has spread.")
    if distance(answer, images.mean(axis=0)) > 1e-9:
        raise Wrong("idle", "A device without images changes the result.")
    return "A device without images changes nothing."


@exercise(
    "replicate",
    "Which arrays does `[param for param in params]` hold: new ones, or those that were given?",
    "Ask `np.shares_memory(a, b)` of the first array on two devices. What makes one of its own?",
)
def arrays_of_their_own(replicate, g) -> str:
    """replicate(params, k): for each of k devices a list of copies of its own."""
    for k in (2, 4, 1):
        params = [g.normal(size=(3, 2)), g.normal(size=2)]
        replicas = [list(replica) for replica in replicate(list(params), k)]
        if [len(replica) for replica in replicas] != [2] * k:
            raise Wrong("count", f"For {k} devices there should be {k} lists of 2 arrays.")
        for rank, replica in enumerate(replicas):
            copies = [
                array(copied, "A copy", p.shape) for copied, p in zip(replica, params, strict=True)
            ]
            off = max(distance(copied, p) for copied, p in zip(copies, params, strict=True))
            if off > 1e-9:
                raise Wrong("value", f"Device {rank} starts {off:.1%} away from what was given.")
        for j in range(2):
            if k > 1 and np.shares_memory(replicas[0][j], replicas[1][j]):
                text = "Two devices hold the same memory: an update of one is one of both."
                raise Wrong("aliasing", text)
            if any(np.shares_memory(params[j], replica[j]) for replica in replicas):
                raise Wrong("given", "A device holds the very array that was given, and no copy.")
    return "Every device starts equal, and owns its arrays."


formula(
    "naive-port",
    "Which messages does device 0 take part in, when the others send and when it answers?",
    "It receives one array from each of the others, and sends one to each of them.",
    cases=lambda g: [(k, 8 * int(g.integers(1, 999))) for k in (1, 2, 3, 8, 64)],
    right=lambda k, num_bytes: sum(
        count(plan("naive", k, num_bytes // 8), 8)[0]
        for count in (lambda p, size: p.bytes_sent(size), lambda p, size: p.bytes_received(size))
    ),
    slips={
        "one-way": (lambda k, n: (k - 1) * n, "The sum has to be sent back, too."),
        "itself": (lambda k, n: 2 * k * n, "Device 0 need not send anything to itself."),
    },
    what="The number of bytes",
    says="These are the bytes of the schedule, from one to sixty-four devices.",
)
