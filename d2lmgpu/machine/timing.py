"""Timers and sums, with D2L's own interface."""

import time

import numpy as np


class Timer:
    """Record several running times, in seconds. It starts when it is made.

    Attributes
    ----------
    times : list of float
        What ``stop`` has recorded, in seconds.
    """

    def __init__(self):
        self.times = []
        self.start()

    def start(self) -> None:
        """Start the timer."""
        self.tik = time.perf_counter()

    def stop(self) -> float:
        """Stop the timer, record the time in the list and return it.

        Returns
        -------
        float
            Seconds since the last ``start``.
        """
        self.times.append(time.perf_counter() - self.tik)
        return self.times[-1]

    def avg(self) -> float:
        """Mean of the recorded times.

        Returns
        -------
        float
            Seconds.

        Raises
        ------
        ZeroDivisionError
            If nothing is recorded.
        """
        return sum(self.times) / len(self.times)

    def sum(self) -> float:
        """Sum of the recorded times.

        Returns
        -------
        float
            Seconds.
        """
        return sum(self.times)

    def cumsum(self) -> list[float]:
        """Accumulated times, as a list.

        Returns
        -------
        list of float
            Seconds from the first start to each stop, without the pauses.
        """
        return np.cumsum(self.times).tolist()


class Accumulator:
    """Sums over ``n`` variables, read as ``accumulator[i]``.

    Parameters
    ----------
    n : int
    """

    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args) -> None:
        """Add one number to each sum.

        Parameters
        ----------
        *args : float
            As many as there are sums.

        Raises
        ------
        ValueError
            For more or fewer.
        """
        self.data = [a + float(b) for a, b in zip(self.data, args, strict=True)]

    def reset(self) -> None:
        """Set every sum back to zero."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, i) -> float:
        return self.data[i]
