"""From Scratch, in both frameworks"""

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "allreduce",
    "Which object do the devices hold before the call, and which after it? Look at `is`.",
    "Add everything up on one device first. Then write the sum *into* the arrays that are there.",
)
def in_place(allreduce, g) -> str:
    """allreduce(data): each of the arrays holds the sum afterwards."""
    for k in (1, 2, 4):
        data = [g.normal(size=(3, 2)) for _ in range(k)]
        before, total = list(data), np.sum(data, axis=0)
        was = [array.copy() for array in data]
        allreduce(data)
        for rank, original in enumerate(before):
            off = distance(original, total)
            if off > 1e-9:
                rebound = any(distance(np.asarray(entry), total) < 1e-9 for entry in data)
                reason = "rebinding" if rebound and data[rank] is not original else "value"
                far = f"{off:.1%} away from the sum"
                far = far if (original != was[rank]).any() else "still what it was before the call"
                text = f"Device {rank} of {k}: its array is {far}."
                if reason == "rebinding":
                    text += " The list holds another array now; the device's own was not written."
                raise Wrong(reason, text)
            if data[rank] is not original:
                raise Wrong("rebinding", f"The list holds another array for device {rank}.")
        if k > 1 and any(np.shares_memory(data[0], other) for other in data[1:]):
            raise Wrong("aliasing", "Two devices hold the same memory.")
    return "Each device's own array holds the sum, for one, two and four devices."


@exercise(
    "owners",
    "Array j belongs to device j % k. What has to be sent to it before it can add, and what by it?",
    "First send every array to its owner, except your own. Then receive and add yours, and send "
    "the sums. At last receive the sums of the others.",
)
def shared_work(allreduce, g) -> str:
    """allreduce(device, params): params is a list of arrays; each holds the sum afterwards."""
    for k in (1, 2, 4):
        params = [[g.normal(size=6) for _ in range(2 * k)] for _ in range(k)]
        before = [list(replica) for replica in params]
        totals = np.sum(params, axis=0)
        exchange = together(allreduce, k, params)
        for rank, replica in enumerate(before):
            off = distance(np.array(replica), totals)
            if off > 1e-9:
                text = f"Device {rank} of {k}: its arrays are {off:.1%} away from the sums."
                raise Wrong("value", text)
        if exchange.left:
            raise Wrong("unread", f"On {k} devices, messages were sent that nobody received.")
        if max(exchange.sent) > 2 * (k - 1) / k * totals.nbytes * (1 + 1e-9):
            text = f"On {k} devices one sends {max(exchange.sent)} bytes, and another few."
            raise Wrong("bytes", f"{text} Share the work evenly.")
    return "Every device has the sums, and none sends more than the others."


@exercise(
    "stale",
    "Print `grads` after the second batch, in which one device has no images.",
    "A device without images adds nothing to the sum: what must its array hold?",
)
def an_idle_device(update, g) -> str:
    """update(w, grads, shards, lr): grads stay from batch to batch; w changes in place."""
    w, lr = g.normal(size=3), float(g.uniform(0.01, 0.1))
    grads, alone = [np.zeros(3), np.zeros(3)], w.copy()
    for number, sizes in enumerate(((4, 1), (3, 0)), 1):
        shards = [(g.normal(size=(size, 3)), g.normal(size=size)) for size in sizes]
        copies, before = [grad.copy() for grad in grads], alone.copy()
        X, y = (np.concatenate(part) for part in zip(*shards, strict=True))
        alone = before - lr * X.T @ (X @ before - y) / len(y)
        same = w
        update(same, grads, shards, lr)
        off = distance(w, alone)
        if off < 1e-9:
            continue
        if np.array_equal(w, before):
            raise Wrong("rebinding", f"After batch {number} the array `w` is what it was.")
        old = sum(copies[i] for i, size in enumerate(sizes) if not size)
        stale = number == 2 and distance(w, alone - lr * old / len(y)) < 1e-9
        text = f"Batch {number}, {sizes} images: the weights are {off:.1%} off."
        more = " A gradient of the batch before is in them." if stale else ""
        raise Wrong("stale" if stale else "value", text + more)
    return "A device without images changes nothing, though it keeps its array."


@exercise(
    "sgd",
    "After `a = a - 1`, which array does the name `a` stand for? And the list, which one does it "
    "hold?",
    "Write into the array: `-=` and `[:] =` do, `=` does not.",
)
def arrays_change(sgd, g) -> str:
    """sgd(params, grads, lr, batch_size): the arrays in params change."""
    params, grads = ([g.normal(size=(3, 2)), g.normal(size=2)] for _ in range(2))
    arrays, lr, n = list(params), float(g.uniform(0.1, 1)), int(g.integers(2, 9))
    before, copies = [param.copy() for param in params], [grad.copy() for grad in grads]
    sgd(params, grads, lr, n)
    for param, old, grad in zip(arrays, before, copies, strict=True):
        off = distance(array(param, "A parameter", old.shape), old - lr * grad / n)
        if off > 1e-9:
            if np.array_equal(param, old):
                raise Wrong("rebinding", "The arrays that the device holds are what they were.")
            raise Wrong("value", f"After the update a parameter is {off:.1%} off.")
    if any(not np.array_equal(a, b) for a, b in zip(grads, copies, strict=True)):
        raise Wrong("changed", "The gradients have been changed.")
    return "The device's own arrays have changed, by the right step."
