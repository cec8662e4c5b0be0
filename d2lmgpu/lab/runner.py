"""Supervised runs: one at a time, each in a process of its own, with a warm spare for the next."""

import threading

from d2lmgpu.lab.job import make_job
from d2lmgpu.lab.outcome import Outcome, outcome_of
from d2lmgpu.lab.process import WorkerProcess

GRACE = 0.5  # seconds that a stopped run has to end by itself
POLL = 0.05  # seconds between two looks at whose turn it is

_lock = threading.Lock()
_spare = None  # one for each notebook: what the next click will most likely need
_running = None  # the runner whose turn it is
_turn = threading.Lock()  # two runs at once would take the cores from each other


class BusyError(RuntimeError):
    """A run was started while another one of the same lab was going on."""


def warm(modules, on_event=None):
    """Have a spare worker with ``modules`` imported; ``on_event`` gets its ``ready``, too."""
    global _spare
    with _lock:
        if _spare is None or _spare.modules != modules or _spare.ended:
            if _spare is not None:
                _spare.kill()
            _spare = WorkerProcess(modules)
        if on_event is not None:
            _spare.listen(on_event)


def cool():
    """End the spare worker, if there is one."""
    global _spare
    with _lock:
        spare, _spare = _spare, None
    if spare is not None:
        spare.kill()
        spare.thread.join()


def _take_spare(modules):
    global _spare
    with _lock:
        spare, _spare = _spare, None
    if spare is not None:
        if spare.modules == modules and not spare.ended:
            return spare
        spare.kill()
    return WorkerProcess(modules)


class Runner:
    """Runs functions in supervised worker processes, never two at once.

    ``on_event(dict)`` gets the events of a run (ready, started, batch, point) and then
    ``on_end(Outcome)`` its end, both in threads that are not the caller's. A run that is going on
    in another lab of the notebook is stopped. ``time_limit`` is in seconds.
    """

    def __init__(self, on_event=lambda event: None, on_end=lambda outcome: None, time_limit=3600):
        self.on_event, self.on_end, self.time_limit = on_event, on_end, time_limit
        self.running = False
        self._thread, self._over, self._why = None, threading.Event(), ""

    def start(self, fn, modules=(), **arguments):
        """Run ``fn(**arguments)`` in a worker that has ``modules`` imported.

        Raises BusyError while a run of this runner is going on.
        """
        if self.running:
            raise BusyError("A run is going on: stop it or wait for its end.")
        self.running, self._over, self._why = True, threading.Event(), ""
        self._thread = threading.Thread(
            target=self._run, args=(fn, modules, arguments), daemon=True, name="lab-run"
        )
        self._thread.start()

    def stop(self, why="Stopped."):
        """End the run, if there is one: gently, and by force after ``GRACE`` seconds."""
        if not self._over.is_set():
            self._why = why
            self._over.set()

    def wait(self, timeout=None):
        """Wait for the end of the run, if there is one. True once nothing runs."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.running

    def _run(self, fn, modules, arguments):
        outcome = None
        while outcome is None:
            if _turn.acquire(timeout=POLL):
                outcome = self._have_turn(fn, modules, arguments)
            elif self._over.is_set():
                outcome = Outcome("stopped", self._why)
            elif (other := _running) is not None:
                other.stop("Stopped, because another lab of this notebook started a run.")
        self.running = False
        self.on_end(outcome)
        if not self.running:
            warm(modules)  # only now: its imports must not take time from a run

    def _have_turn(self, fn, modules, arguments):
        global _running
        _running = self
        try:
            return self._supervise(make_job(fn, arguments), modules)
        except Exception as error:
            return Outcome("failed", str(error))
        finally:
            _running = None
            _turn.release()

    def _supervise(self, job, modules):
        events, over = {}, self._over

        def on_event(event):
            events[event["event"]] = event
            if event["event"] == "exit":
                over.set()
            else:
                self.on_event(event)

        worker = _take_spare(modules)
        worker.start(job, on_event)
        if not over.wait(self.time_limit):
            self.stop(f"Stopped at the time limit of {self.time_limit:g} seconds.")
        worker.interrupt()
        worker.thread.join(GRACE)
        if not worker.ended:
            if "outcome" not in events:
                self._why += " It did not end by itself, so its processes were killed."
            worker.kill()
            worker.thread.join()
        return outcome_of(events, self._why, worker.log)
