"""Splitting a batch and adding up over devices, in NumPy: the oracle for both backends.

A "device" is an array of its own. `allreduce` replaces what every device holds by the sum over all
of them, with the algorithm that you name, and returns the schedule that it followed.
"""

import math
from collections.abc import Mapping, Set
from fractions import Fraction
from itertools import chain
from numbers import Real

import numpy as np

from d2lmgpu.collectives.schedules import (
    ALGORITHMS,
    CollectiveError,
    Schedule,
    check_devices,
    need,
    plan,
)
from d2lmgpu.machine.checks import is_whole

__all__ = ["ALGORITHMS", "CollectiveError", "allreduce", "carry_out", "shard_sizes", "split"]

_BLOCK = 2**18  # bytes; a few devices' blocks fit a core's cache


def shard_sizes(n: int, k: int, weights=None) -> list[int]:
    """How many of n examples each of k devices gets; the sizes add up to n.

    Without weights the sizes differ by at most one, larger ones first. With them they are
    weights·n, rounded by largest remainder (ties go to the earlier device). A size may be 0.

    Parameters
    ----------
    n : int
        From 0 up.
    k : int
        From 1 to 1024.
    weights : list of float, optional
        One a device, finite, none below 0, summing to 1 (within 1e-6).

    Returns
    -------
    list of int
        One entry a device.

    Raises
    ------
    CollectiveError
        For another n or k, and for other weights: a dictionary or a set, too, whose order is not
        that of the devices.
    """
    need.whole("n", n, 0)
    check_devices(k)
    if weights is None:
        return [n // k + (i < n % k) for i in range(k)]
    weights = _exact(weights, k)
    total = sum(weights)
    shares = [n * weight / total for weight in weights]
    sizes = [math.floor(share) for share in shares]
    by_remainder = sorted(range(k), key=lambda i: sizes[i] - shares[i])
    for i in by_remainder[: n - sum(sizes)]:
        sizes[i] += 1
    return sizes


def _exact(weights, k: int) -> list[Fraction]:
    """The weights as exact fractions, so that rounding never makes the sizes miss n."""
    allowed = f"k = {k} finite non-negative numbers that sum to 1 (within 1e-6)"
    weights = _in_order("weights", weights, allowed)
    # Of each at most 2: what is more, infinite or no number ends here, before it becomes a float.
    numbers = all(isinstance(weight, Real) and 0 <= weight <= 2 for weight in weights)
    whole = numbers and len(weights) == k and abs(math.fsum(weights) - 1) <= 1e-6
    need(whole, "weights", weights, allowed)
    return [Fraction(float(weight)) for weight in weights]


def _in_order(name: str, values, allowed: str) -> list:
    """The values as a list; CollectiveError where they have no order, or are not several."""
    try:
        several = list(values)
    except TypeError:  # cannot be iterated over
        several = None
    need(several is not None and not isinstance(values, Mapping | Set), name, values, allowed)
    return several


def split(array: np.ndarray, sizes) -> list[np.ndarray]:
    """Consecutive pieces of an array along its first axis; views, not copies.

    Parameters
    ----------
    array : numpy.ndarray, (n, …)
    sizes : list of int
        From 0 up, adding up to n.

    Returns
    -------
    list of numpy.ndarray
        One piece of each size.

    Raises
    ------
    CollectiveError
        For other sizes.
    """
    array = np.asarray(array)
    need(array.ndim, "array", "a single number", "an array with a first axis")
    allowed = f"whole numbers from 0 up that add up to the array's {len(array)} rows"
    sizes = _in_order("sizes", sizes, allowed)
    need(all(map(is_whole, sizes)) and sum(sizes) == len(array), "sizes", sizes, allowed)
    ends = np.cumsum(sizes, dtype=int)
    return [array[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def allreduce(arrays, algorithm: str = "ring", **options) -> Schedule:
    """Replace, in place, each device's array by the sum over devices; return the schedule.

    Afterwards all devices hold the same bits. Integers wrap around as NumPy's do. A NaN or an
    infinity on one device reaches every device, as in NumPy's sum: nothing is hidden or replaced.

    Parameters
    ----------
    arrays : list of numpy.ndarray
        One a device, all of one shape and one numeric dtype, none sharing memory.
    algorithm : str
        A key of ALGORITHMS.
    **options : int
        Of the algorithm: ``hierarchical`` takes ``per_machine``.

    Returns
    -------
    Schedule
        What was done: who sent which elements to whom.

    Raises
    ------
    CollectiveError
        For no arrays, unlike shapes or dtypes, a dtype that is not a number, read-only arrays,
        arrays that share memory, an unknown algorithm, or an option that it lacks.
    """
    arrays = _in_order("arrays", arrays, "one array per device")
    _check(arrays)
    schedule = plan(algorithm, len(arrays), arrays[0].size, **options)
    _run(schedule, arrays)
    return schedule


def carry_out(schedule: Schedule, arrays) -> None:
    """Do what a schedule says to the devices' arrays, in place: any collective of ``operations``.

    Parameters
    ----------
    schedule : Schedule
    arrays : list of numpy.ndarray
        One for each of its devices, with as many elements as it has.

    Raises
    ------
    CollectiveError
        For what is no schedule, for more, fewer or other arrays, and for those that ``allreduce``
        refuses.
    """
    need.kind("schedule", schedule, Schedule)
    arrays = _in_order("arrays", arrays, "one array per device")
    _check(arrays)
    sizes = [array.size for array in arrays]
    allowed = f"{schedule.num_devices} arrays of {schedule.size} elements"
    need(sizes == [schedule.size] * schedule.num_devices, "The sizes", sizes, allowed)
    _run(schedule, arrays)


def _run(schedule: Schedule, arrays) -> None:
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


def _check(arrays) -> None:
    kinds = sorted({type(array).__name__ for array in arrays})
    need(kinds == ["ndarray"], "What k devices hold", kinds, "at least one NumPy array, one each")
    for what in ("shape", "dtype"):
        kinds = list(dict.fromkeys(str(getattr(array, what)) for array in arrays))
        need(len(kinds) == 1, f"The {what} of the arrays", kinds, f"arrays of one {what}")
    need(np.issubdtype(arrays[0].dtype, np.number), "The dtype", kinds[0], "arrays of numbers")
    for i, array in enumerate(arrays):
        need(array.flags.writeable, f"The array of device {i}", "read-only", "a copy")
        for j in range(i):
            if np.shares_memory(arrays[j], array):
                raise CollectiveError(
                    f"Devices {j} and {i} share memory, so adding would count twice; give copies."
                )
