"""What the devices do in a step of training, timed in a process to which a lab listens.

A step begins when the loader makes a batch and ends when it is asked for the next one. Within it
are timed: making the batch (``loading``), what ``parallel`` runs on each device (``computing``) and
how long a device that is done is without work there (``waiting``), and ``allreduce``
(``exchanging``): the backend's, or what the reader calls so. What is called inside of one of them
belongs to it. The rest of a step, such as the update, is not told apart. Where a library exchanges,
``parts`` is what it says of a step: of DDP see ``ddp``.

Nothing is timed before somebody listens, see ``LISTENER``. Nothing here imports a framework.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import wraps
from types import FunctionType

from d2lmgpu.process.sending import functions_of
from d2lmgpu.process.step_parts import COMPUTING, EXCHANGING, LOADING, WAITING

PAUSE = 0.5  # seconds from one step that waits for its devices to the next
GAP, LEAST = 2e-4, 1e-4  # seconds: of a pause in a lane, and of a span, that nobody could see
LAST, MOST_SPANS = 5, 90  # steps and spans in one event: less than 4 KiB
EXCHANGE = "allreduce"  # what a function must be called


class Steps:
    """The steps of the thread that makes this.

    Parameters
    ----------
    wait : callable, optional
        Waits for all devices, where calls return before their work is done: then a step in half a
        second is timed, and that one waits where a part of it begins or ends.
    memory : callable, optional
        Returns the bytes that each device has taken.
    timed : bool
        If not, only memory is told.
    parts : callable
        Returns further (what, start, end) of a step that began at a time of time.monotonic().
    """

    def __init__(self, wait=None, memory=None, timed=True, parts=lambda since: ()):
        self.wait = wait
        self.memory = memory
        self.timed = timed
        self.parts = parts
        self.thread = threading.get_ident()
        self.spans = None
        self.inside = False
        self.next = 0.0
        self.warm = False
        self.forget()

    def forget(self) -> None:
        self.number = 0
        self.samples = 0
        self.seconds = {}
        self.total = 0.0
        self.last = deque(maxlen=LAST)

    def begin(self, samples) -> None:
        """A batch of so many is about to be made."""
        self.spans, self.batch = None, samples
        if self.timed and time.monotonic() >= self.next:
            self.settle()
            self.spans = []
            self.devices = 1
            self.start = time.monotonic()

    def settle(self) -> None:
        """Wait for what the devices still do, where calls return before that is done."""
        if self.wait:
            self.wait()

    def add(self, what, start, end, device=None) -> None:
        """Write down a span of one device, or of all of them."""
        if self.spans is not None:
            self.spans.append((device, what, start, end))

    def parallel(self, run, fn, *per_device_args, apart=True) -> list:
        """See the function ``parallel``, of which this times the devices."""
        devices = len(per_device_args[0])
        spans = [None] * devices

        def timed(device, *args):
            start = time.monotonic()
            result = fn(*args)
            spans[device] = start, time.monotonic()
            return result

        with _Inside(self) as start:
            result = run(timed, range(devices), *per_device_args)
            self.settle()
            end = time.monotonic()
            self.devices = max(devices, self.devices)
            if apart and devices > 1:
                for device, (began, ended) in enumerate(spans):
                    self.add(WAITING, start, began, device)
                    self.add(COMPUTING, began, ended, device)
                    self.add(WAITING, ended, end, device)
            else:
                self.add(COMPUTING, start, end)
                if devices == 1:
                    self.add(WAITING, end, end)
        return result

    def end(self) -> None:
        """The next batch is asked for."""
        if self.spans is None:
            return
        self.settle()
        end = time.monotonic()
        if self.wait:
            self.next = end + PAUSE
        for part in self.parts(self.start):
            self.add(*part)
        if self.warm:  # the first step makes threads, plans and memory: it is like no other
            self.number, self.total = self.number + 1, self.total + end - self.start
            self.samples += self.batch
            for device, what, start, stop in self.spans:
                mean = (stop - start) / (1 if device is None else self.devices)
                self.seconds[what] = self.seconds.get(what, 0.0) + mean
            self.last.append(self.spans)
        self.spans, self.warm = None, True

    def totals(self) -> dict:
        """What has been seen since the last time."""
        totals = {
            "number": self.number,
            "samples": self.samples,
            "seconds": self.seconds,
            "total": self.total,
            "lanes": drawn(self.last),
            "memory": self.memory and self.memory(),
        }
        self.forget()
        return totals


def drawn(steps) -> list:
    """Spans of ``steps`` for a picture: ``[device or None, what, start, end]``."""
    lanes = []
    for spans in steps:
        last = {}
        for device, what, start, end in spans:
            before = last.get(device)
            if before and before[1] == what and start - before[3] < GAP:
                before[3] = end
            else:
                last[device] = [device, what, start, end]
                lanes.append(last[device])
    return [
        [device, what, round(start, 4), round(end, 4)]
        for device, what, start, end in lanes[-MOST_SPANS:]
        if end - start > LEAST
    ]


class Listener:
    """Who times the steps of this process, if anybody does: a lab, or ``explain``.

    There is one of it a process, ``LISTENER``, and it cannot be handed on: what a step is made of,
    the loader, ``parallel`` and ``allreduce``, is called by the reader's own code, as the chapters
    have it. Only the thread that made the steps is timed: of those of devices, each would have its
    own.
    """

    def __init__(self):
        self.steps = None

    def listen(self, steps: Steps) -> "Listener":
        """From now on time ``steps``, in place of others; until the end of a ``with``, if of one.

        Parameters
        ----------
        steps : Steps

        Returns
        -------
        Listener
            This one.
        """
        self.steps = steps
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.steps = None

    def begin(self, samples) -> None:
        """The loader is about to make a batch of so many."""
        if (steps := self._of_this_thread()) is not None:
            steps.begin(samples)

    def loaded(self) -> None:
        """The batch is made."""
        if (steps := self.timed()) is not None:
            steps.add(LOADING, steps.start, time.monotonic())

    def end(self) -> None:
        """The loader is asked for the next batch."""
        if (steps := self._of_this_thread()) is not None:
            steps.end()

    def totals(self) -> dict | None:
        """What the steps since the last time took, as an event has it; None if nobody listens."""
        return None if (steps := self.steps) is None else steps.totals()

    def timed(self) -> Steps | None:
        """The steps, if one of them is being timed and this is not inside a part of it."""
        steps = self._of_this_thread()
        return None if steps is None or steps.spans is None or steps.inside else steps

    def _of_this_thread(self):
        steps = self.steps
        return None if steps is None or steps.thread != threading.get_ident() else steps


LISTENER = Listener()


def exchange(fn) -> Callable:
    """``fn``, whose calls count as exchanging."""

    @wraps(fn)
    def timed(*args, **kwargs):
        if (steps := LISTENER.timed()) is None:
            return fn(*args, **kwargs)
        with _Inside(steps) as start:
            result = fn(*args, **kwargs)
            steps.settle()
            steps.add(EXCHANGING, start, time.monotonic())
        return result

    return timed


def parallel(run, fn, *per_device_args, apart=True) -> list:
    """``run(fn, *per_device_args)``, which calls ``fn`` once for each device.

    With ``apart`` a call returns when its own device is done; else nobody knows which device had to
    wait for another one.
    """
    if (steps := LISTENER.timed()) is None:
        return run(fn, *per_device_args)
    return steps.parallel(run, fn, *per_device_args, apart=apart)


def watch(fn) -> None:
    """Count what the notebook of ``fn`` calls ``allreduce`` as exchanging."""
    for function in functions_of(fn):
        own = function.__globals__.get(EXCHANGE)
        if isinstance(own, FunctionType):
            function.__globals__[EXCHANGE] = exchange(own)


class _Inside:
    """A part of a step, from when the devices are at rest; what it calls is not timed apart."""

    def __init__(self, steps):
        self.steps = steps

    def __enter__(self):
        self.steps.inside = True
        self.steps.settle()
        return time.monotonic()

    def __exit__(self, *error):
        self.steps.inside = False
