"""Timers and sums, with D2L's own interface."""

import os
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


class Queue:
    """How long the thread that makes this is ready and has no core: Linux's schedstat."""

    FILE = "/proc/thread-self/schedstat"

    def __init__(self):
        self._file = os.open(self.FILE, os.O_RDONLY) if os.path.exists(self.FILE) else None
        self._before = 0.0
        self._before = self.seconds()

    def __del__(self):
        if self._file is not None:
            os.close(self._file)

    def seconds(self) -> float:
        """Since this was made; 0 where the system does not tell."""
        if self._file is None:
            return 0.0
        return int(os.pread(self._file, 64, 0).split()[1]) / 1e9 - self._before
