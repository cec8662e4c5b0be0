"""Splitting a batch and adding up over devices, in NumPy: the oracle for both backends.

A "device" is an array of its own. `allreduce` replaces what every device holds by the sum over all
of them, with the algorithm that you name, and returns the schedule that it carried out.
"""

import math
from fractions import Fraction
from itertools import chain
from operator import index

import numpy as np

from d2lmgpu.schedules import ALGORITHMS, CollectiveError, Schedule, plan

__all__ = ["ALGORITHMS", "CollectiveError", "allreduce", "carry_out", "shard_sizes", "split"]

_BLOCK = 2**18  # bytes; a few devices' blocks fit a core's cache


def shard_sizes(n: int, k: int, weights=None) -> list[int]:
    """How many of n examples each of k devices gets; the sizes add up to n.

    Without weights the sizes differ by at most one, larger ones first. Weights are k finite
    non-negative numbers that sum to 1 (within 1e-6); then the sizes are weights·n, rounded by
    largest remainder (ties go to the earlier device). A size may be 0.

    Raises CollectiveError for n < 0, k < 1, or weights that are not as above.
    """
    if index(n) < 0:
        raise CollectiveError(f"Cannot split n = {n} examples; n must be at least 0.")
    if index(k) < 1:
        raise CollectiveError(f"Cannot split over k = {k} devices; k must be at least 1.")
    if weights is None:
        return [n // k + (i < n % k) for i in range(k)]
    weights = _check_weights(weights, k)
    total = sum(weights)
    shares = [n * weight / total for weight in weights]
    sizes = [math.floor(share) for share in shares]
    by_remainder = sorted(range(k), key=lambda i: sizes[i] - shares[i])
    for i in by_remainder[: n - sum(sizes)]:
        sizes[i] += 1
    return sizes


def _check_weights(weights, k: int) -> list[Fraction]:
    """The weights as exact fractions, so that rounding never makes the sizes miss n."""
    values = [float(weight) for weight in weights]
    allowed = f"k = {k} finite non-negative numbers that sum to 1 (within 1e-6)"
    if len(values) != k:
        raise CollectiveError(f"There are {len(values)} weights {values}; give {allowed}.")
    if not all(math.isfinite(value) and value >= 0 for value in values):
        raise CollectiveError(f"The weights are {values}; give {allowed}.")
    if abs(math.fsum(values) - 1) > 1e-6:
        raise CollectiveError(f"The weights {values} sum to {math.fsum(values):g}; give {allowed}.")
    return [Fraction(value) for value in values]


def split(array: np.ndarray, sizes) -> list[np.ndarray]:
    """Consecutive pieces of `array` along its first axis, of the given sizes; views, not copies.

    Raises CollectiveError if a size is negative or the sizes do not add up to len(array).
    """
    array, sizes = np.asarray(array), list(sizes)
    if array.ndim == 0:
        raise CollectiveError("Cannot split a single number; give an array with a first axis.")
    if any(size < 0 for size in sizes) or sum(sizes) != len(array):
        raise CollectiveError(
            f"Sizes {sizes} add up to {sum(sizes)}, the array has {len(array)} rows; "
            "sizes must be non-negative and add up to the rows."
        )
    ends = np.cumsum(sizes, dtype=int)
    return [array[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def allreduce(arrays, algorithm: str = "ring", **options) -> Schedule:
    """Replace, in place, each device's array by the sum over devices; return the schedule.

    arrays: one array per device, all of one shape and one numeric dtype, none sharing memory.
    algorithm: a key of ALGORITHMS; `hierarchical` takes the option per_machine.

    Afterwards all devices hold the same bits. Integers wrap around as NumPy's do. A NaN or an
    infinity on one device reaches every device, as in NumPy's sum: nothing is hidden or replaced.

    Raises CollectiveError for no arrays, unlike shapes or dtypes, a dtype that is not a number,
    read-only arrays, arrays that share memory, or an unknown algorithm.
    """
    arrays = list(arrays)
    _check_arrays(arrays)
    schedule = plan(algorithm, len(arrays), arrays[0].size, **options)
    carry_out(schedule, arrays)
    return schedule


def carry_out(schedule: Schedule, arrays) -> None:
    """Do what the schedule says to the devices' arrays, in place, one round after another.

    No element depends on its neighbours. So one block after the other goes through all rounds, and
    what a round leaves in the cache the next one finds there.
    """
    flat = [array.ravel() for array in arrays]  # a view where the array is contiguous
    if schedule.num_nodes > len(flat):
        flat.append(np.empty_like(flat[0]))  # the host's own memory
    block = max(1, _BLOCK // flat[0].itemsize)
    for start in range(0, schedule.size, block):
        for send in chain.from_iterable(schedule.rounds):
            first, last = max(send.start, start), min(send.stop, start + block)
            if first >= last:
                continue
            source, target = flat[send.source][first:last], flat[send.target][first:last]
            if send.add:
                np.add(target, source, out=target)
            else:
                np.copyto(target, source)
    for array, values in zip(arrays, flat, strict=False):  # not the host
        if not np.shares_memory(array, values):
            array[...] = values.reshape(array.shape)


def _check_arrays(arrays) -> None:
    if not arrays:
        raise CollectiveError("An allreduce over k = 0 devices; give at least one array.")
    for what in ("shape", "dtype"):
        kinds = [getattr(array, what, None) for array in arrays]
        if any(kind is None or kind != kinds[0] for kind in kinds):
            raise CollectiveError(
                f"Devices hold unlike arrays: {what}s {kinds}; give one NumPy {what} everywhere."
            )
    if not np.issubdtype(arrays[0].dtype, np.number):
        raise CollectiveError(f"Cannot add up {arrays[0].dtype} arrays; convert to numbers first.")
    for i, array in enumerate(arrays):
        if not array.flags.writeable:
            raise CollectiveError(f"Device {i}'s array is read-only; give a copy.")
        for j in range(i):
            if np.shares_memory(arrays[j], array):
                raise CollectiveError(
                    f"Devices {j} and {i} share memory, so adding would count twice; give copies."
                )
