"""What two devices could give right now: one-device loops in two processes, a core or GPU each.

The cores of a rented machine may be the two halves of one, or busy with other tenants' work. Then
no program is twice as fast on two of them, and the speedup of ours says nothing without this one.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import SHORT_TURNS

ROOT = Path(__file__).resolve().parents[1]


class Apart:
    """Two processes that run a framework's loop on one device whenever they are asked."""

    def __init__(self, framework):
        cores = sorted(os.sched_getaffinity(0))[:2]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.apart", framework, str(core)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": str(gpu)},
            )
            for gpu, core in enumerate(cores)
        ]  # fmt: skip
        self.rate()  # imports, data, warm-up

    def rate(self):
        """Samples/s of both together, measured while both run."""
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return sum(float(process.stdout.readline()) for process in self.processes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.communicate()  # at the end of its input it ends


def main(framework, core):
    os.sched_setaffinity(0, [int(core)])
    loops = importlib.import_module(f"benchmarks.{framework}_loops")
    for _ in sys.stdin:
        print(loops.ours(1, **SHORT_TURNS), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
