"""The process in which one run of the lab happens: who listens to it, and what it prints."""

import sys
import threading
import traceback
from collections import deque

from d2lmgpu.process.child import ONE_WORKER, Child
from d2lmgpu.process.output import TAIL, Bounded
from d2lmgpu.process.settings import python_of, run_module

SOON = 0.2  # seconds until what was printed is told of: a flood is told of five times a second


class WorkerProcess(Child):
    """A worker with some ``modules`` of this package imported, which waits for one job.

    Once it has its job, ``{"event": "printed"}`` says that there is more in ``log``. The last of
    its events is ``{"event": "exit", "code": n}``, None where it had to be killed. By then no
    process and no file of it is left. Raises PythonError, see ``python_of``.
    """

    def __init__(self, modules):
        self.modules, self.log, self.ended = modules, Bounded(0, TAIL), False
        self._told = deque(maxlen=10)  # all that a spare says; later nobody asks for it
        self._listeners, self._listening = [], threading.RLock()
        self._printing, self._soon = False, None  # whether to tell of it; the Timer that will
        backend = next((name for name in modules if name != "launch"), None)
        python = python_of(backend) if backend else sys.executable
        super().__init__(ONE_WORKER, [*run_module("d2lmgpu.lab.worker", python), *modules], {})
        self.thread = threading.Thread(target=self._listen, daemon=True, name="lab-reader")
        self.thread.start()

    def listen(self, on_event):
        """Call ``on_event(dict)`` for every event so far and up to the job, from other threads."""
        with self._listening:
            self._listeners.append(on_event)
            for event in self._told:
                on_event(event)

    def start(self, job: bytes, on_event):
        """Give the worker its job; from now on ``on_event`` alone hears of it, from the start."""
        with self._listening:  # at once: an event in between would be nobody's
            self._listeners.clear()
            self.listen(on_event)
            self._printing = True
        self.send(job)

    def _listen(self):
        end = self.read(self._tell, self._add)
        self.close()
        self.ended = True
        self._tell({"event": "exit", "code": end["codes"] and end["codes"][0]})

    def _add(self, data):
        self.log.add(data)
        if self._printing and (self._soon is None or not self._soon.is_alive()):
            self._soon = threading.Timer(SOON, self._tell_printed)
            self._soon.daemon = True
            self._soon.start()

    def _tell_printed(self):
        with self._listening:
            if not self.ended:
                self._tell({"event": "printed"})

    def _tell(self, event):
        with self._listening:
            self._told.append(event)
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception:  # a picture that cannot be drawn must not end the reading
                    self.log.add(traceback.format_exc().encode())
