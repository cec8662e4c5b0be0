"""Supervised runs: one at a time, each in a worker of its own."""

import sys
import threading

from d2lmgpu.lab.functions import JobError, make_job
from d2lmgpu.lab.outcome import Outcome, outcome_of
from d2lmgpu.lab.pool import POOL
from d2lmgpu.process.settings import PythonError

GRACE = 0.5  # seconds that a stopped run has to end by itself
POLL = 0.05  # seconds between two looks at whose turn it is


class BusyError(RuntimeError):
    """A run was started while another one of the same lab was going on."""


class Runner:
    """Runs functions in workers of a ``pool``, never two at once.

    ``on_event(dict)`` gets the events of a run (ready, started, batch, point, and printed, with
    the ``lines`` so far and their end as ``text``) and then ``on_end(Outcome)`` its end, both in
    threads that are not the caller's. A run that is going on in another lab of the notebook is
    stopped. ``time_limit`` is in seconds.
    """

    def __init__(
        self,
        on_event=lambda event: None,
        on_end=lambda outcome: None,
        time_limit=3600,
        pool=POOL,
    ):
        self.on_event = on_event
        self.on_end = on_end
        self.time_limit = time_limit
        self.pool = pool
        self.running = False
        self._lock, self._thread = threading.Lock(), None

    def start(self, fn, modules=(), **arguments) -> None:
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

    def stop(self, why="Stopped.") -> None:
        """End the run, if there is one: gently, and by force after ``GRACE`` seconds."""
        with self._lock:
            if self.running and not self._over.is_set():
                self._why = why
                self._over.set()

    def wait(self, timeout=None) -> bool:
        """Wait for the end of the run, if there is one. True once nothing runs."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.running

    def _run(self, job, modules, outcome):
        while outcome is None:
            if self.pool.turn.acquire(timeout=POLL):
                outcome = self._have_turn(job, modules)
            elif self._over.is_set():
                outcome = Outcome("stopped", self._why)
            elif (other := self.pool.running) is not None:
                other.stop("Stopped, because another lab of this notebook started a run.")
        with self._lock:
            self.running = False
        self.on_end(outcome)
        if not self.running:
            self.pool.keep_spare(modules)  # only now: its imports must not take time from a run

    def _have_turn(self, job, modules):
        self.pool.running = self
        try:
            worker = self.pool.worker(modules)
            worker.start(job, self.on_event, self._over)
            if not self._over.wait(self.time_limit):
                self.stop(f"Stopped at the time limit of {self.time_limit:g} seconds.")
            if not worker.stop(GRACE):
                self._why += " It did not end by itself, so its processes were killed."
            return outcome_of(worker.outcome or {}, worker.code, self._why, worker.log)
        except Exception as error:
            return Outcome("failed", str(error))
        finally:
            self.pool.running = None
            self.pool.turn.release()
