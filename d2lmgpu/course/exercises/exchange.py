"""Exercises on devices that send and receive."""

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "ring",
    "Cut the array into k parts. In each round every device sends one part to its right neighbour "
    "and receives one from its left; which part is it in round r, for device i?",
    "k − 1 rounds in which what arrives is *added*: then each device has one finished part. k − 1 "
    "further rounds in which what arrives *replaces* what is there.",
)
def the_sum(allreduce, g):
    """allreduce(device, data): in place, every device ends with the sum."""
    for k in (1, 2, 3, 4, 5):
        n = int(g.integers(2, 6)) * k
        data, total, _, left = run(allreduce, k, n, g)
        for rank, found in enumerate(data):
            off = distance(array(found, "The array", (n,)), total)
            if off > 1e-9:
                wrong = int((~np.isclose(found, total)).sum())
                text = f"Device {rank} of {k}: {wrong} of {n} numbers are not the sum."
                raise Wrong("value", text)
        if left:
            raise Wrong("unread", f"On {k} devices, messages were sent that nobody received.")
    return "Every device has the sum, on one to five devices."


@exercise("ring")
def sizes_that_do_not_divide(allreduce, g):
    k, n = 4, 4 * int(g.integers(2, 9)) + 1
    data, total, _, _ = run(allreduce, k, n, g)
    if any(distance(found, total) > 1e-9 for found in data):
        raise Wrong("ragged", f"{n} numbers on {k} devices, which do not divide: not the sum.")
    return "Also for a length that the number of devices does not divide."


@exercise("ring")
def bytes_of_each(allreduce, g):
    for k in (2, 4, 8):
        n = 24 * k
        _, _, sent, _ = run(allreduce, k, n, g)
        most, allowed = max(sent), 2 * (k - 1) / k * 8 * n
        if most > allowed * (1 + 1e-9):
            text = f"On {k} devices one sends {most:,} bytes; {allowed:,.0f} are enough."
            raise Wrong("bytes", text)
    return "No device sends more than 2(k − 1)/k times its array."


def run(allreduce, k, n, g):
    """(the arrays afterwards, their sum before, bytes that each sent, boxes with messages left)"""
    data = [g.normal(size=n) for _ in range(k)]
    total = np.sum(data, axis=0)
    _, sent, left = together(allreduce, k, data)
    return data, total, sent, left


@exercise(
    "zero",
    "Which numbers does the momentum of a device have to hold, if it updates only its own part?",
    "`device.reduce_scatter(gradient)` gives the sum of your part. Update momentum and weights of "
    "that part, then `device.all_gather` hands the new weights to everybody.",
)
def like_one_device(step, g):
    """step(device, w, momentum, gradient, lr): the new (w, momentum of this part)."""
    for k in (1, 2, 4):
        n = 3 * k
        w, lr = g.normal(size=n), float(g.uniform(0.01, 1))
        alone, v = w.copy(), np.zeros(n)
        ws, vs = [w.copy() for _ in range(k)], [np.zeros(n // k) for _ in range(k)]
        for number in (1, 2, 3):
            gradients = [g.normal(size=n) for _ in range(k)]
            v = 0.9 * v + np.mean(gradients, axis=0)
            alone = alone - lr * v
            pairs, sent, _ = together(step, k, ws, vs, [one.copy() for one in gradients], [lr] * k)
            if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                raise Wrong("type", "`step` has to return (w, momentum).")
            ws = [array(pair[0], "w", (n,)) for pair in pairs]
            vs = [array(pair[1], "The momentum", (n // k,)) for pair in pairs]
            off = max(distance(one, alone) for one in ws)
            if off > 1e-9:
                after = "the first update" if number == 1 else f"{number} updates"
                reason = "momentum" if number > 1 else "value"
                text = f"On {k} devices the weights are {off:.1%} off after {after}."
                raise Wrong(reason, text)
            allowed = 2 * (k - 1) / k * 8 * n
            if max(sent) > allowed * (1 + 1e-9):
                text = f"A step sends {max(sent)} bytes; {allowed:.0f} are enough."
                raise Wrong("bytes", text)
    return "Three updates are those of one device, and each device keeps 1/k of the momentum."
