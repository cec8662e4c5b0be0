"""MXNet: our loop beside D2L's own, LeNet, on one device and on two."""

import os
import subprocess
import sys
from functools import partial

from benchmarks.apart import ROOT, Apart
from benchmarks.measure import SHAPES, SHORT_TURNS, Timed, pairs
from benchmarks.parts import where_time_goes
from d2lmgpu import mxnet as d2l

from mxnet import np  # isort: skip  (the backend sets the threads before MXNet is imported)


def lenet_params():
    d2l.seed(0)
    return [np.random.normal(0, 0.05, s) if len(s) > 1 else np.zeros(s) for s in SHAPES]


def ours(num_gpus, batch_size=256, **turns):
    """Samples/s of LeNet from scratch; ``turns`` as for Timed."""
    params, devices = lenet_params(), d2l.devices(num_gpus)
    device_params = [d2l.get_params(params, device) for device in devices]
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)
    timed = Timed(train_iter, d2l.synchronize, **turns)
    for X, y in timed:
        d2l.train_batch(X, y, device_params, devices, 0.1)
    return timed.rate


def theirs():
    """Samples/s of D2L's own loader and loop, on one device; see ``benchmarks.d2l_mxnet``."""
    command = [sys.executable, "-m", "benchmarks.d2l_mxnet"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return float(out.stdout)


def against_d2l():
    """On one device: D2L's loop first, ours second."""
    return {"pairs": {"LeNet, equal arithmetic": pairs(theirs, lambda: ours(1))}}


def two_devices():
    """One device first, two second."""
    with Apart("mxnet") as apart:
        one, two = (partial(ours, k, **SHORT_TURNS) for k in (1, 2))
        lenet = pairs(one, two, ceiling=apart.rate)
    return {
        "pairs": {"LeNet from scratch": lenet},
        "time of an update, two devices": where_time_goes(d2l, lenet_params()),
    }
