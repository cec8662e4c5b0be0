"""A runner whose events and outcomes a test can wait for, and the processes that it has."""

import threading

import psutil
from processes import below, marked

from d2lmgpu.lab import runner

SECONDS = 60  # a hang is a failure: nothing here takes as long
MARK = "D2LMGPU_TEST_OF_THE_LAB"


class Recorder:
    """A Runner that keeps what it was told, and waits for what a test names."""

    def __init__(self, **settings):
        self.events, self.outcomes = [], []
        self._heard = threading.Condition()
        self.runner = runner.Runner(self._hear, self.outcomes.append, **settings)

    def _hear(self, event):
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def start(self, fn, *modules, **arguments):
        arguments = {"num_gpus": 1, "batch_size": 8, "lr": 0.1} | arguments
        self.runner.start(fn, modules, **arguments)

    def until(self, name):
        """Wait for an event called ``name``; it."""
        with self._heard:
            assert self._heard.wait_for(lambda: self.named(name), SECONDS), f"no event {name}"
            return self.named(name)[-1]

    def named(self, name):
        return [event for event in self.events if event["event"] == name]

    def end(self):
        """Wait for the end of the run; its Outcome."""
        assert self.runner.wait(SECONDS), "the run has not ended"
        return self.outcomes[-1]

    def run(self, fn, *modules, **arguments):
        self.start(fn, *modules, **arguments)
        return self.end()


def worker_under(process):
    """The psutil process of the worker of a ``Worker``: guard → supervisor → worker."""
    return below(psutil.Process(process.pid))[1][0]


def lab_processes(mark):
    """Processes that were started with ``mark`` in their environment, wherever in the tree.

    ``info`` of each has its name: it may be gone when it is asked.
    """
    return marked(MARK, mark, "name")


def idle(model):
    """Wait until the model has heard of the end of its run."""
    assert model.runner.wait(SECONDS)
    assert model.status == "idle"
