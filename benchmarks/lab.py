"""How quick the lab is, and what it costs: ``python -m benchmarks.lab`` on a machine at rest.

Each number is the median of several, with the least and the greatest. ``UI`` is the longest that
the notebook's main thread had to wait while a run was started, drawn and stopped: a widget's
callback would have waited as long.
"""

import os
import subprocess
import sys
import threading
import time

from benchmarks.measure import PAIRS, verdict
from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.view import LabView

REPEATS = 5
SETTLE = 5  # seconds after which a spare has nothing left to import
SETTINGS = {"num_gpus": 2, "batch_size": 256, "lr": 0.2}
CHAPTERS = {
    "PyTorch, LeNet": ("chapters/scratch/pytorch.ipynb", 1.5),
    "MXNet, LeNet": ("chapters/scratch/mxnet.ipynb", 1.5),
    "PyTorch, ResNet-18, DDP": ("chapters/concise/pytorch.ipynb", 4.0),
}  # the second number: seconds that a click may take to the first point
BARE = """
import sys
from d2lmgpu.course.chapter_train import ChapterTrain
run = ChapterTrain(sys.argv[1])(2, 256, 0.2, 3)
print("samples/s", run.samples_per_second)
"""


class Bench:
    """A lab with its widgets, and what a reader at it would wait for."""

    def __init__(self, path):
        self.model = LabModel({"train": ChapterTrain(path)}, **SETTINGS)
        self.view = LabView(self.model)
        self.drawn, self.idle = threading.Event(), threading.Event()
        self.view.observe(self._on_live, "live")
        self.model.observe(self._on_status, "status")

    def _on_live(self, change):
        if change.new and change.new["run"]["curves"]:
            self.drawn.set()

    def _on_status(self, change):
        if change.new == "idle":
            self.idle.set()

    def warm(self) -> None:
        """Wait until there is a spare worker that has everything imported."""
        ready = threading.Event()
        POOL.keep_spare(self.model.function.modules, lambda event: ready.set())
        ready.wait()
        time.sleep(SETTLE)

    def click_and_stop(self) -> tuple[float, float, float]:
        """Seconds to the first point, from Stop to idle, and the longest wait of this thread."""
        self.warm()
        self.drawn.clear()
        self.idle.clear()
        click = time.perf_counter()
        self.model.run()
        longest = self._tick_until(self.drawn, click)
        first_point = time.perf_counter() - click
        longest = max(longest, self._tick_until(self.idle, time.perf_counter(), seconds=1))
        stop = time.perf_counter()
        self.model.stop()
        longest = max(longest, self._tick_until(self.idle, stop))
        return first_point, time.perf_counter() - stop, longest

    @staticmethod
    def _tick_until(event, last, seconds=600):
        """Tick every 5 ms until ``event``; the longest time between two ticks, less the 5 ms."""
        longest, end = 0.0, last + seconds
        while last < end and not event.is_set():
            time.sleep(0.005)
            now = time.perf_counter()
            longest, last = max(longest, now - last - 0.005), now
        return longest

    def speed(self) -> float:
        """Samples a second of a run of three epochs under the lab."""
        self.warm()
        self.model.num_epochs = 3
        self.idle.clear()
        self.model.run()
        self.idle.wait()
        return self.model.runs[-1].samples_per_second


def bare_speed(path) -> float:
    """Samples a second of the same run in a process of its own, without a lab."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, path], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split("samples/s ")[-1])


def main() -> int:
    """Measure everything; returns the number of results beyond their limits."""
    os.environ.setdefault("D2LMGPU_PROFILE", "quick")
    good = []
    for name, (path, limit) in CHAPTERS.items():
        bench = Bench(path)
        first, stopped, waits = zip(*(bench.click_and_stop() for _ in range(REPEATS)))
        ratios = [bare_speed(path) / bench.speed() for _ in range(PAIRS)]
        good += [
            verdict(f"{name}: click to first point", first, limit, unit=" s"),
            verdict(f"{name}: Stop to idle", stopped, 1.0, unit=" s"),
            verdict(f"{name}: UI, longest wait", [max(waits)], 0.1, ".3f", " s"),
            verdict(f"{name}: time under the lab over bare", ratios, 1.03, ".3f"),
        ]
    POOL.end_spare()
    return good.count(False)


if __name__ == "__main__":
    sys.exit(main())
