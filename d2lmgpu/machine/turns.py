"""Times of functions that take turns, so that a slow moment of the machine hits all alike."""

from statistics import median
from time import perf_counter

from d2lmgpu.machine.checks import Need, is_list


class TurnsError(ValueError):
    """There is nothing to take turns, or what is compared was not timed in the same rounds."""


need = Need(TurnsError)


def in_turns(functions, rounds=5, clock=None) -> dict[str, list[float]]:
    """How long each of several functions takes, one after the other in each round.

    Parameters
    ----------
    functions : dict
        ``{name: function without arguments}``. A function on GPUs has to wait for them itself.
    rounds : int
        How many rounds count. One more is made before them, to warm up.
    clock : callable, optional
        Returns seconds, as those of `time`. `time.thread_time` leaves out what this thread waits
        for a core, and all that other threads and GPUs do. If left out, the wall clock.

    Returns
    -------
    dict
        ``{name: seconds of each round}``.

    Raises
    ------
    TurnsError
        Without a function, without a round, or with a clock that cannot be called.
    """
    right = isinstance(functions, dict) and functions and all(map(callable, functions.values()))
    need(right, "functions", functions, "a dict of functions, at least one")
    need.whole("rounds", rounds)
    need(clock is None or callable(clock), "clock", clock, "a function that returns seconds")
    clock = clock or perf_counter
    seconds = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            start = clock()
            function()
            if number:
                seconds[name].append(clock() - start)
    return seconds


def times_as_fast(seconds, base) -> str:
    """How many times as fast something was as ``base``, in words: median, least and most.

    Parameters
    ----------
    seconds, base : list of float
        The times of the same work in the same rounds, as ``in_turns`` gives them.

    Returns
    -------
    str
        As "1.85 times as fast (1.80 to 1.91)".

    Raises
    ------
    TurnsError
        If they are not of equally many rounds.
    """
    right = is_list(seconds) and is_list(base) and len(seconds) == len(base) > 0
    need(right, "seconds", seconds, f"a list of as many times as base: {base!r}")
    ratios = sorted(base_time / time for time, base_time in zip(seconds, base))
    return f"{median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})"
