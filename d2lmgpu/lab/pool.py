"""The workers of a notebook's labs: one that runs, and a spare for the next run."""

import sys
import threading
import traceback
from collections import deque

from d2lmgpu.lab.outcome import readable
from d2lmgpu.process.child import ONE_WORKER, Child
from d2lmgpu.process.output import TAIL, Bounded
from d2lmgpu.process.settings import PythonError, python_of, run_module

PRINTED_EVERY = 0.2  # seconds from one event of what was printed to the next, also in a flood


class Worker(Child):
    """A process with some ``modules`` of this package imported, which waits for one job.

    A thread reads it until it has ``ended``: then no process and no file of it is left. ``code``
    is its exit code, None where it had to be killed, ``outcome`` the event of that name, if there
    was one, ``log`` the end of what it has printed: once it has its job, events ``printed`` say so.
    Raises PythonError, see ``python_of``.
    """

    def __init__(self, modules):
        self.modules, self.log = modules, Bounded(0, TAIL)
        self.outcome = None
        self.code = None
        self.ended = False
        self._history = deque(maxlen=10)  # all of a spare's; later nobody asks for them
        self._listeners, self._listening = [], threading.RLock()
        self._over = None  # the Event of whoever waits for the end of the job
        self._timer = None  # which will say that something was printed
        backend = next((name for name in modules if name != "launch"), None)
        python = python_of(backend) if backend else sys.executable
        super().__init__(ONE_WORKER, [*run_module("d2lmgpu.lab.worker", python), *modules], {})
        self.thread = threading.Thread(target=self._read_all, daemon=True, name="lab-reader")
        self.thread.start()

    def listen(self, on_event) -> None:
        """Call ``on_event(dict)`` for every event so far and up to the job, from other threads."""
        with self._listening:
            self._listeners.append(on_event)
            for event in self._history:
                on_event(event)

    def start(self, job: bytes, on_event, over: threading.Event) -> None:
        """Give the worker its job; ``on_event`` alone hears of it, from the worker's own start.

        ``over`` is set at its end.
        """
        with self._listening:  # at once: an event in between would be nobody's
            self._listeners.clear()
            self._over = over
            self.listen(on_event)
            if self.ended:
                over.set()
        self.send(job)

    def stop(self, grace) -> bool:
        """Interrupt the job, and kill after ``grace`` seconds; whether it came to its own end."""
        self.interrupt()
        self.thread.join(grace)
        by_itself = self.ended or self.outcome is not None
        self.end()
        return by_itself

    def end(self) -> None:
        """End the process, and wait until nothing of it is left."""
        self.kill()
        self.thread.join()

    def _read_all(self):
        with self:
            end = self.read(self._hand_on, self._add)
        self.code = end["codes"] and end["codes"][0]
        with self._listening:
            self.ended = True
            if self._over is not None:
                self._over.set()

    def _add(self, data):
        self.log.add(data)
        has_job = self._over is not None
        if has_job and (self._timer is None or not self._timer.is_alive()):
            self._timer = threading.Timer(PRINTED_EVERY, self._report_printed)
            self._timer.daemon = True
            self._timer.start()

    def _report_printed(self):
        with self._listening:
            if not self.ended:
                text = readable(self.log.text())
                self._hand_on({"event": "printed", "lines": self.log.lines, "text": text})

    def _hand_on(self, event):
        if event["event"] == "outcome":
            self.outcome = event
        with self._listening:
            self._history.append(event)
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception:  # a picture that cannot be drawn must not end the reading
                    self.log.add(traceback.format_exc().encode())


class Pool:
    """What the labs of a notebook share: whose ``turn`` it is to run, and one ``spare`` worker."""

    def __init__(self):
        self.spare = None  # what the next click will most likely need
        self.turn = threading.Lock()  # two runs at once would take the cores from each other
        self.running = None  # the Runner whose turn it is
        self._lock = threading.Lock()

    def keep_spare(self, modules, on_event=lambda event: None) -> None:
        """Have a spare with ``modules``; ``on_event`` gets ``ready``, or why not: ``outcome``."""
        with self._lock:
            try:
                self.spare = self._spare_with(modules) or Worker(modules)
            except PythonError as error:
                return on_event({"event": "outcome", "status": "failed", "message": str(error)})
            self.spare.listen(on_event)

    def end_spare(self) -> None:
        """End the spare worker, if there is one."""
        with self._lock:
            spare, self.spare = self.spare, None
        if spare is not None:
            spare.end()

    def worker(self, modules) -> Worker:
        """A worker with ``modules``, its caller's from now on: the spare, or a new one."""
        with self._lock:
            spare, self.spare = self._spare_with(modules), None
        return spare or Worker(modules)

    def _spare_with(self, modules):
        """The spare, if it has ``modules`` and is alive; any other is ended. Needs the lock."""
        if self.spare is not None and (self.spare.modules != modules or self.spare.ended):
            self.spare.kill()
            self.spare = None
        return self.spare


POOL = Pool()  # of this process: all its labs run on the same cores
