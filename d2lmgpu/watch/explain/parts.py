"""What one thread did from when to when, and how much of it it computed, queued or waited.

Of each part of a step are known its wall time, the processor time of the thread, and how long the
thread was ready and had no core (Linux's schedstat; elsewhere 0). The rest it was blocked: it
waited for a message, a disk or a lock. So other programs on a busy machine do not look like
waiting.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from d2lmgpu.machine.core_queue import Queue, on_cores
from d2lmgpu.process.step_parts import OTHER

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # of the environment, which decide on threads
CORES = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND")  # and on cores
LAST = 12  # steps whose spans are kept, for the timeline


def now(queue) -> tuple:
    """Wall time, processor time and queued time (of its ``Queue``) of this thread, in seconds."""
    return time.monotonic(), time.thread_time(), queue.seconds()


def threads() -> dict:
    """{thread id: processor seconds} of all threads of this process."""
    seconds = {}
    folder = "/proc/self/task"
    for thread in os.listdir(folder) if os.path.isdir(folder) else []:
        with (
            suppress(OSError),
            open(f"{folder}/{thread}/schedstat", encoding="utf-8") as file,
        ):  # it may have ended
            seconds[int(thread)] = on_cores(file.read())[0]
    return seconds


def faults() -> int:
    """How many pages of memory the system has had to give this process while it ran."""
    import resource  # which Windows lacks

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class Parts:
    """The parts of the steps of the thread that has made this; times by time.monotonic()."""

    def __init__(self):
        self.thread, self._queue = threading.get_ident(), Queue()
        self.names = []
        self.steps = []
        self.spans = []
        self._mark = self.now()
        self._begin()

    def now(self) -> tuple[float, float, float]:
        """Wall time, processor time and queued time of the thread, in seconds."""
        return now(self._queue)

    def _begin(self):
        self.current = {}
        self.start = self._mark[0]

    def _charge(self):
        """What has passed since the last mark is that of the innermost part."""
        now, name = self.now(), self.name
        spent = self.current.setdefault(name, [0.0, 0.0, 0.0])
        for i in range(3):
            spent[i] += now[i] - self._mark[i]
        if name != OTHER and now[0] - self._mark[0] > 5e-5:
            self.spans.append((len(self.steps), name, self._mark[0], now[0]))
        self._mark = now

    @property
    def name(self) -> str:
        """The innermost part that is going on."""
        return self.names[-1] if self.names else OTHER

    def in_steps_thread(self) -> bool:
        """Whether this is the thread of the steps."""
        return threading.get_ident() == self.thread

    def enter(self, name) -> None:
        self._charge()
        self.names.append(name)

    def leave(self) -> None:
        self._charge()
        self.names.pop()

    @contextmanager
    def within(self, name) -> Iterator[None]:
        """For the time of a block a part goes on."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def step(self) -> tuple:
        """A step has ended here; (start, end, {part: [wall, processor, queued]})."""
        self._charge()
        self.steps.append((self.start, self._mark[0], self.current))
        oldest = len(self.steps) - LAST
        self.spans = [span for span in self.spans if span[0] >= oldest]
        self._begin()
        return self.steps[-1]
