"""Wrong answers to the exercises, each with the reason for which it has to be refused.

The right ones are the solutions in ``exercises/``.
"""

import numpy as np


def plain_mean(means, sizes):
    return np.mean(means, axis=0)


def sum_of_means(means, sizes):
    return np.sum(means, axis=0)


def over_the_largest(means, sizes):
    return sum(m * s for m, s in zip(means, sizes, strict=True) if s) / max(sizes)


def weighted_in_place(means, sizes):
    for mean, size in zip(means, sizes, strict=True):
        mean *= size / sum(sizes)
    return np.sum(means, axis=0)


def nan_spreads(means, sizes):
    return sum(m * s for m, s in zip(means, sizes, strict=True)) / sum(sizes)


def rebinds(data):
    total = sum(data)
    for i in range(len(data)):
        data[i] = total.copy()


def one_for_all(data):
    total = sum(data)
    data[:] = [total] * len(data)


def only_the_first(data):
    for other in data[1:]:
        data[0] += other


def mean_of_all(data):
    mean = sum(data) / len(data)
    for array in data:
        array[:] = mean


def mean_of_micro_batches(gradient, X, y, micro):
    starts = range(0, len(X), micro)
    return np.mean([gradient(X[i : i + micro], y[i : i + micro]) for i in starts], axis=0)


def sum_of_micro_batches(gradient, X, y, micro):
    return sum(gradient(X[i : i + micro], y[i : i + micro]) for i in range(0, len(X), micro))


def all_at_once(gradient, X, y, micro):
    return gradient(X, y)


def without_the_rest(gradient, X, y, micro):
    full = max(len(X) // micro, 1)
    parts = [slice(i * micro, (i + 1) * micro) for i in range(full)]
    return sum(len(X[p]) * gradient(X[p], y[p]) for p in parts) / len(X)


def rounded_each(n, weights):
    return [round(n * w / sum(weights)) for w in weights]


def rest_to_the_last(n, weights):
    sizes = [int(n * w / sum(weights)) for w in weights]
    sizes[-1] += n - sum(sizes)
    return sizes


def fractions(n, weights):
    return [n * w / sum(weights) for w in weights]


def equal_shares(n, weights):
    k = len(weights)
    return [n // k + (i < n % k) for i in range(k)]


def one_for_the_idle(n, weights):
    cuts = [round(n * sum(weights[:i]) / sum(weights)) for i in range(len(weights) + 1)]
    sizes = np.diff(cuts).tolist()
    if 0 in weights:
        sizes[weights.index(0)] += 1
        sizes[0] -= 1
    return sizes


def with_duplicates(indices, correct, n):
    return np.mean(np.concatenate(correct))


def over_n_with_duplicates(indices, correct, n):
    return np.concatenate(correct).sum() / n


def first_rank_only(indices, correct, n):
    return np.mean(correct[0])


def naive_allreduce(device, data):
    if device.rank:
        device.send(data, 0)
        data[:] = device.receive(0)
        return
    for other in range(1, device.k):
        data += device.receive(other)
    for other in range(1, device.k):
        device.send(data, other)


def one_round_too_few(device, data):
    k, i = device.k, device.rank
    parts = np.array_split(data, k)
    for r in range(k - 2):
        device.send(parts[(i - r) % k], (i + 1) % k)
        parts[(i - r - 1) % k] += device.receive((i - 1) % k)
    for r in range(k - 1 if k > 1 else 0):
        device.send(parts[(i + 1 - r) % k], (i + 1) % k)
        parts[(i - r) % k][:] = device.receive((i - 1) % k)


def replaces_at_once(device, data):
    k, i = device.k, device.rank
    parts = np.array_split(data, k)
    for r in range(2 * k - 2):
        device.send(parts[(i - r) % k], (i + 1) % k)
        parts[(i - r - 1) % k][:] = device.receive((i - 1) % k)


def whole_arrays_round(device, data):
    own = data.copy()
    for _ in range(device.k - 1):
        device.send(own, (device.rank + 1) % device.k)
        own = device.receive((device.rank - 1) % device.k)
        data += own


def waits_first(device, data):
    if device.k > 1:
        device.receive((device.rank - 1) % device.k)


def cuts_evenly_only(device, data):
    k, i = device.k, device.rank
    size = len(data) // k
    parts = [data[j * size : (j + 1) * size] for j in range(k)]
    for r in range(k - 1):
        device.send(parts[(i - r) % k], (i + 1) % k)
        parts[(i - r - 1) % k] += device.receive((i - 1) % k)
    for r in range(k - 1):
        device.send(parts[(i + 1 - r) % k], (i + 1) % k)
        parts[(i - r) % k][:] = device.receive((i - 1) % k)


def whole_momentum(device, w, momentum, gradient, lr):
    total = device.all_gather(device.reduce_scatter(gradient)) / device.k
    momentum = np.resize(momentum, w.shape) * 0.9 + total
    return w - lr * momentum, momentum


def sum_not_mean(device, w, momentum, gradient, lr):
    momentum = 0.9 * momentum + device.reduce_scatter(gradient)
    part = np.split(w, device.k)[device.rank] - lr * momentum
    return device.all_gather(part), momentum


def forgets_momentum(device, w, momentum, gradient, lr):
    part_gradient = device.reduce_scatter(gradient) / device.k
    part = np.split(w, device.k)[device.rank] - lr * part_gradient
    return device.all_gather(part), part_gradient


def gathers_twice(device, w, momentum, gradient, lr):
    momentum = 0.9 * momentum + device.reduce_scatter(gradient) / device.k
    device.all_gather(momentum)
    part = np.split(w, device.k)[device.rank] - lr * momentum
    return device.all_gather(part), momentum


def one_after_another(host, device, ahead):
    return sum(host) + sum(device)


def as_far_as_it_likes(host, device, ahead):
    loaded = done = 0
    for a, b in zip(host, device, strict=True):
        loaded += a
        done = max(loaded, done) + b
    return done


def one_ahead_too_few(host, device, ahead):
    before = max(0, ahead - 1) + 1
    loads, ends = [0], []
    for i, (a, b) in enumerate(zip(host, device, strict=True)):
        loads.append(max(loads[-1], ends[i - before] if i >= before else 0) + a)
        ends.append(max(loads[-1], ends[-1] if ends else 0) + b)
    return ends[-1]


def a_device_that_does_two_at_once(host, device, ahead):
    loaded, ends = 0, []
    for i, (a, b) in enumerate(zip(host, device, strict=True)):
        loaded = max(loaded, ends[i - 1 - ahead] if i > ahead else 0) + a
        ends.append(loaded + b)
    return max(ends)


def no_latency(k, num_bytes, latency, bandwidth):
    return 2 * (k - 1) * num_bytes / k / bandwidth


def one_half_only(k, num_bytes, latency, bandwidth):
    return (k - 1) * (latency + num_bytes / k / bandwidth)


def whole_messages(k, num_bytes, latency, bandwidth):
    return 2 * (k - 1) * (latency + num_bytes / bandwidth)


def k_rounds(k, num_bytes, latency, bandwidth):
    return 2 * k * (latency + num_bytes / k / bandwidth)


def at_once(update, base, k, warmup):
    return k * base


def from_zero(update, base, k, warmup):
    return k * base * min(1, update / warmup)


def rises_on(update, base, k, warmup):
    return base + (k - 1) * base * update / warmup


def in_one_step(update, base, k, warmup):
    return base if update < warmup else k * base


TOO_NARROW = """def seconds(k, num_bytes, latency, bandwidth):
    return 14 * (latency + num_bytes / 8 / bandwidth)"""

WRONG = {
    "combine": {
        plain_mean: "mean-of-means",
        sum_of_means: "value",
        over_the_largest: "value",
        weighted_in_place: "changed",
        nan_spreads: "idle",
    },
    "allreduce": {
        rebinds: "rebinding",
        one_for_all: "rebinding",
        only_the_first: "value",
        mean_of_all: "value",
    },
    "accumulate": {
        mean_of_micro_batches: "value",
        sum_of_micro_batches: "scale",
        all_at_once: "room",
        without_the_rest: "value",
    },
    "split": {
        rounded_each: "sum",
        rest_to_the_last: "share",
        fractions: "whole",
        equal_shares: "share",
        one_for_the_idle: "zero",
    },
    "evaluate": {
        with_duplicates: "duplicates",
        over_n_with_duplicates: "duplicates",
        first_rank_only: "value",
    },
    "ring": {
        naive_allreduce: "bytes",
        one_round_too_few: "value",
        replaces_at_once: "value",
        whole_arrays_round: "bytes",
        waits_first: "deadlock",
        cuts_evenly_only: "ragged",
    },
    "zero": {
        whole_momentum: "shape",
        sum_not_mean: "value",
        forgets_momentum: "momentum",
        gathers_twice: "bytes",
    },
    "look-ahead": {
        one_after_another: "serial",
        as_far_as_it_likes: "unlimited",
        one_ahead_too_few: "serial",
        a_device_that_does_two_at_once: "value",
    },
    "ring-time": {
        no_latency: "latency",
        one_half_only: "value",
        whole_messages: "value",
        k_rounds: "one",
    },
    "warm-up": {
        at_once: "start",
        from_zero: "start",
        rises_on: "end",
        in_one_step: "rise",
    },
}
