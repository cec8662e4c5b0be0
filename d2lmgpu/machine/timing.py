"""Timers and sums, with D2L's own interface."""

import time

import numpy as np


class Timer:
    """Record several running times, in seconds."""

    def __init__(self):
        self.times = []
        self.start()

    def start(self):
        """Start the timer."""
        self.tik = time.perf_counter()

    def stop(self):
        """Stop the timer, record the time in the list and return it."""
        self.times.append(time.perf_counter() - self.tik)
        return self.times[-1]

    def avg(self):
        """Mean of the recorded times."""
        return sum(self.times) / len(self.times)

    def sum(self):
        """Sum of the recorded times."""
        return sum(self.times)

    def cumsum(self):
        """Accumulated times, as a list."""
        return np.cumsum(self.times).tolist()


class Accumulator:
    """Sums over ``n`` variables."""

    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        """Add one number to each sum."""
        self.data = [a + float(b) for a, b in zip(self.data, args, strict=True)]

    def reset(self):
        """Set every sum back to zero."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, i):
        return self.data[i]
