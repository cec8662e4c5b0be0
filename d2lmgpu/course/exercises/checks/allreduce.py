"""Allreduce: Six Ways"""

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "ring",
    "Cut the array into k parts. In each round every device sends one part to its right neighbour "
    "and receives one from its left; which part is it in round r, for device i?",
    "k − 1 rounds in which what arrives is *added*: then each device has one finished part. k − 1 "
    "further rounds in which what arrives *replaces* what is there.",
)
def the_sum(allreduce, g) -> str:
    """allreduce(device, data): in place, every device ends with the sum."""
    for k in (1, 2, 3, 4, 5):
        n = int(g.integers(2, 6)) * k
        data, total, exchange = run(allreduce, k, n, g)
        for rank, answer in enumerate(data):
            off = distance(array(answer, "The array", (n,)), total)
            if off > 1e-9:
                wrong = int((~np.isclose(answer, total)).sum())
                text = f"Device {rank} of {k}: {wrong} of {n} numbers are not the sum."
                raise Wrong("value", text)
        if exchange.left:
            raise Wrong("unread", f"On {k} devices, messages were sent that nobody received.")
    return "Every device has the sum, on one to five devices."


@exercise("ring")
def sizes_that_do_not_divide(allreduce, g) -> str:
    k, n = 4, 4 * int(g.integers(2, 9)) + 1
    data, total, _ = run(allreduce, k, n, g)
    if any(distance(answer, total) > 1e-9 for answer in data):
        raise Wrong("ragged", f"{n} numbers on {k} devices, which do not divide: not the sum.")
    return "Also for a length that the number of devices does not divide."


@exercise("ring")
def bytes_of_each(allreduce, g) -> str:
    for k in (2, 4, 8):
        n = 24 * k
        _, _, exchange = run(allreduce, k, n, g)
        most, allowed = max(exchange.sent), 2 * (k - 1) / k * 8 * n
        if most > allowed * (1 + 1e-9):
            text = f"On {k} devices one sends {most:,} bytes; {allowed:,.0f} are enough."
            raise Wrong("bytes", text)
    return "No device sends more than 2(k − 1)/k times its array."


def run(allreduce, k, n, g) -> tuple:
    """(the arrays afterwards, their sum before, what was exchanged)"""
    data = [g.normal(size=n) for _ in range(k)]
    total = np.sum(data, axis=0)
    return data, total, together(allreduce, k, data)


@exercise(
    "halving",
    "Devices i and i ^ d, with d = k/2, k/4, …, 1, are partners. Each keeps one half of what it is "
    "still adding up and gives the other half away.",
    "After log2(k) rounds each device has one finished part. Go back through the same partners: "
    "each sends what it has finished, and what comes is *put* in its place.",
)
def sums_by_halves(allreduce, g) -> str:
    """allreduce(device, data): in place, in 2 log2(k) messages of each device."""
    for k in (1, 2, 4, 8):
        n = int(g.integers(2, 6)) * k
        data, total, exchange = run(allreduce, k, n, g)
        wrong = [rank for rank in range(k) if distance(data[rank], total) > 1e-9]
        if wrong:
            raise Wrong("value", f"On {k} devices, {len(wrong)} do not have the sum.")
        if exchange.left:
            raise Wrong("unread", f"On {k} devices, messages were sent that nobody received.")
        if max(exchange.messages) > 2 * np.log2(k):
            text = f"On {k} devices one sends {max(exchange.messages)} messages: fewer are enough."
            raise Wrong("rounds", text)
        if max(exchange.sent) > 2 * (k - 1) / k * 8 * n:
            text = f"On {k} devices one sends {max(exchange.sent)} bytes: fewer are enough."
            raise Wrong("bytes", text)
    return "Every device has the sum, after few messages and few bytes."


def bisected(k, latency, bandwidth) -> float:
    """The number of bytes for which a tree and a ring take equally long."""
    levels, low, high = int(np.log2(k)), 0.0, 1e30
    for _ in range(300):
        size = (low + high) / 2
        tree = sum(latency + size / bandwidth for _ in range(2 * levels))
        ring = 2 * (k - 1) * (latency + size / k / bandwidth)
        low, high = (size, high) if tree < ring else (low, size)
    return size


formula(
    "crossover",
    "Write down the time of both, for n bytes. A tree sends the whole array in every round, and "
    "goes up and down again.",
    "Both times are straight lines in n. Set them equal, and bring n to one side.",
    cases=lambda g: [
        (k, float(g.uniform(1e-6, 1e-3)), float(g.uniform(1e8, 1e11))) for k in (4, 8, 64)
    ],
    right=bisected,
    slips={
        "one-way": (
            lambda k, t, b: t * b * (2 * (k - 1) - np.log2(k)) / (np.log2(k) - 2 * (k - 1) / k),
            "The tree has to hand the sum out again.",
        ),
        "half-ring": (
            lambda k, t, b: t * b * (2 * np.log2(k) - (k - 1)) / ((k - 1) / k - 2 * np.log2(k)),
            "The ring has to hand its parts out again.",
        ),
    },
    what="The number of bytes",
    says="From there on the ring is faster, on four to sixty-four devices.",
    tolerance=1e-6,
)
