"""LeNet from scratch with either backend, ``d2l``: its speed, and where the time goes."""

import importlib
import os
import subprocess
import sys
from functools import partial

import numpy as np

from benchmarks.measure import BATCHES, SHORT_TURNS, WARMUP, Timed, pairs
from d2lmgpu.backend.arguments import LENET_SHAPES

BATCH_SIZE = 256


def parameters(d2l) -> list:
    """Small random weights and biases of 0."""
    d2l.seed(0)
    rng = np.random.default_rng(0)
    scales = {shape: 0.05 if len(shape) > 1 else 0 for shape in LENET_SHAPES}
    return [d2l.array(rng.normal(0, scales[s], s).astype("float32")) for s in LENET_SHAPES]


def rate(d2l, num_gpus, **turns) -> float:
    """Samples/s on so many devices; ``turns`` as for Timed."""
    params, devices = parameters(d2l), d2l.devices(num_gpus)
    device_params = [d2l.get_params(params, device) for device in devices]
    train_iter, _ = d2l.load_data_fashion_mnist(BATCH_SIZE)
    timed = Timed(train_iter, d2l.synchronize, **turns)
    for X, y in timed:
        d2l.train_batch(X, y, device_params, devices, 0.1)
    return timed.rate


def two_devices(d2l, framework) -> dict:
    """One device first, two second, and what two could give right now."""
    single, pair = (partial(rate, d2l, k, **SHORT_TURNS) for k in (1, 2))
    with Apart(framework) as apart:
        return pairs(single, pair, ceiling=apart.rate)


class Apart:
    """What two devices could give right now: one in each of two processes, a core or GPU each.

    The cores of a rented machine may be the two halves of one, or busy with other tenants' work.
    Then no program is twice as fast on two of them, and the speedup of ours says nothing without
    this one. The processes run whenever they are asked.
    """

    def __init__(self, framework):
        cores = sorted(os.sched_getaffinity(0))[:2]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.lenet", framework, str(core)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu)},
            )
            for gpu, core in enumerate(cores)
        ]
        self.rate()  # imports, data, warm-up

    def rate(self) -> float:
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


def where_time_goes(d2l) -> dict:
    """Share of each part of an update on two devices, the parts timed one after another."""
    params, devices, timers = parameters(d2l), d2l.devices(2), {}
    device_params = [d2l.get_params(params, device) for device in devices]
    train_iter, _ = d2l.load_data_fashion_mnist(BATCH_SIZE)

    def part(name, fn, *args):
        timer = timers.setdefault(name, d2l.Timer())
        timer.start()
        result = fn(*args)
        d2l.synchronize()
        timer.stop()
        return result

    def allreduce_all():
        for replicas in zip(*device_params):
            d2l.allreduce([p.grad for p in replicas])

    def step_all():
        for replica in device_params:
            d2l.sgd(replica, 0.1, BATCH_SIZE)

    batches = iter(train_iter)
    for i in range(WARMUP + BATCHES):
        if i == WARMUP:
            timers.clear()
        X, y = part("load", next, batches)
        shards = part("split", d2l.split_batch, X, y, devices)
        part("forward and backward", d2l.parallel, d2l.forward_backward, *shards, device_params)
        part("allreduce", allreduce_all)
        part("step", step_all)
    total = sum(t.sum() for t in timers.values())
    return {name: round(t.sum() / total, 4) for name, t in timers.items()}


def when_asked(framework, core) -> None:
    """Print the rate of one device on this core for each line of the input."""
    os.sched_setaffinity(0, [int(core)])
    d2l = importlib.import_module(f"d2lmgpu.{framework}")
    for _ in sys.stdin:
        print(rate(d2l, 1, **SHORT_TURNS), flush=True)


if __name__ == "__main__":
    when_asked(*sys.argv[1:])
