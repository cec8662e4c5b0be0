"""How long threads ran, and were ready and had no core: Linux's schedstat."""

import os


def on_cores(schedstat: str | bytes) -> tuple[float, float]:
    """Seconds that a thread ran, and that it was ready and had no core: of Linux's schedstat."""
    ran, ready, _ = map(int, schedstat.split())
    return ran / 1e9, ready / 1e9


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
        return on_cores(os.pread(self._file, 64, 0))[1] - self._before
