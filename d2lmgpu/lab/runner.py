"""Supervised runs: one at a time, each in a process of its own, with a warm spare for the next."""

import sys
import threading

from d2lmgpu.lab.functions import JobError, make_job
from d2lmgpu.lab.outcome import Outcome, outcome_of, readable
from d2lmgpu.lab.process import WorkerProcess
from d2lmgpu.process.settings import PythonError

GRACE = 0.5  # seconds that a stopped run has to end by itself
POLL = 0.05  # seconds between two looks at whose turn it is

_lock = threading.Lock()
_spare = None  # one for each notebook: what the next click will most likely need
_running = None  # the runner whose turn it is
_turn = threading.Lock()  # two runs at once would take the cores from each other


class BusyError(RuntimeError):
    """A run was started while another one of the same lab was going on."""


def keep_spare(modules, on_event=lambda event: None):
    """Have a spare with ``modules``; ``on_event`` gets ``ready``, or an ``outcome``: why not."""
    global _spare
    with _lock:
        try:
            _spare = _spare_with(modules) or WorkerProcess(modules)
        except PythonError as error:
            return on_event({"event": "outcome", "status": "failed", "message": str(error)})
        _spare.listen(on_event)


def end_spare():
    """End the spare worker, if there is one."""
    global _spare
    with _lock:
        spare, _spare = _spare, None
    if spare is not None:
        spare.kill()
        spare.thread.join()


def _spare_with(modules):
    """The spare, if it has ``modules`` and is alive; any other is ended. Needs the lock."""
    global _spare
    if _spare is not None and (_spare.modules != modules or _spare.ended):
        _spare.kill()
        _spare = None
    return _spare


def _worker(modules):
    """A worker with ``modules``: the spare, or a new one."""
    global _spare
    with _lock:
        spare, _spare = _spare_with(modules), None
    return spare or WorkerProcess(modules)


class Runner:
    """Runs functions in supervised worker processes, never two at once.

    ``on_event(dict)`` gets the events of a run (ready, started, batch, point, and printed, with
    the ``lines`` so far and their end as ``text``) and then ``on_end(Outcome)`` its end, both in
    threads that are not the caller's. A run that is going on in another lab of the notebook is
    stopped. ``time_limit`` is in seconds.
    """

    def __init__(self, on_event=lambda event: None, on_end=lambda outcome: None, time_limit=3600):
        self.on_event, self.on_end, self.time_limit = on_event, on_end, time_limit
        self.running = False
        self._lock, self._thread = threading.Lock(), None

    def start(self, fn, modules=(), **arguments):
        """Run ``fn(**arguments)`` in a worker that has ``modules`` imported.

        What cannot be sent is a failed run. Raises BusyError while a run is going on.
        """
        job = outcome = None
        try:  # here: MXNet's NumPy semantics are a thread's own, and no cell runs meanwhile
            job = make_job(fn, arguments)
        except (JobError, PythonError) as error:
            outcome = Outcome("failed", str(error))
        mxnet = sys.modules.get("mxnet")
        if mxnet and mxnet.util.is_np_shape() and "mxnet" not in modules:
            modules = (*modules, "mxnet")  # its arrays can be read under the same semantics only
        with self._lock:
            if self.running:
                raise BusyError("A run is going on: stop it or wait for its end.")
            self._over, self._why = threading.Event(), ""
            self._thread = threading.Thread(
                target=self._run, args=(job, modules, outcome), daemon=True, name="lab-run"
            )
            self._thread.start()
            self.running = True

    def stop(self, why="Stopped."):
        """End the run, if there is one: gently, and by force after ``GRACE`` seconds."""
        with self._lock:
            if self.running and not self._over.is_set():
                self._why = why
                self._over.set()

    def wait(self, timeout=None):
        """Wait for the end of the run, if there is one. True once nothing runs."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.running

    def _run(self, job, modules, outcome):
        while outcome is None:
            if _turn.acquire(timeout=POLL):
                outcome = self._have_turn(job, modules)
            elif self._over.is_set():
                outcome = Outcome("stopped", self._why)
            elif (other := _running) is not None:
                other.stop("Stopped, because another lab of this notebook started a run.")
        with self._lock:
            self.running = False
        self.on_end(outcome)
        if not self.running:
            keep_spare(modules)  # only now: its imports must not take time from a run

    def _have_turn(self, job, modules):
        global _running
        _running = self
        try:
            return self._supervise(job, modules)
        except Exception as error:
            return Outcome("failed", str(error))
        finally:
            _running = None
            _turn.release()

    def _supervise(self, job, modules):
        events, over = {}, self._over

        def on_event(event):
            if event["event"] in ("outcome", "exit"):
                events[event["event"]] = event
            if event["event"] == "exit":
                over.set()
            elif event["event"] == "printed":
                text = readable(worker.log.text())
                self.on_event({"event": "printed", "lines": worker.log.lines, "text": text})
            else:
                self.on_event(event)

        worker = _worker(modules)
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
