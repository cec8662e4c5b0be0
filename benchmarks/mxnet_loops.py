"""MXNet: our loop beside D2L's own, LeNet, on one device and on two."""

import contextlib
import io
import subprocess
import sys
from functools import partial

from benchmarks import lenet
from benchmarks.measure import Timed, pairs


def d2l_rate(batch_size=256) -> float:
    """Samples/s of D2L's own loader and multi-GPU loop (``train_ch13``), on one device.

    Without anything of ours set: our backend's settings hold for the whole process.
    """
    import d2l.mxnet as book
    from mxnet import gluon, npx
    from mxnet.gluon import nn

    # The files are the data set's own, packed again: their content is right, their SHA-1 is not.
    gluon.utils.check_sha1 = gluon.data.vision.datasets.check_sha1 = lambda path, sha1: True
    npx.set_np()
    net = nn.Sequential()
    net.add(
        nn.Conv2D(20, 3, activation="relu"),
        nn.AvgPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"),
        nn.AvgPool2D(2, 2),
        nn.Dense(128, activation="relu"),
        nn.Dense(10),
    )
    device = [book.try_gpu(0)]
    net.initialize(ctx=device)
    with contextlib.redirect_stdout(io.StringIO()):
        train_iter, test_iter = book.load_data_fashion_mnist(batch_size)
        timed = Timed(train_iter, npx.waitall)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        first_test_batch = [next(iter(test_iter))]
        book.train_ch13(net, timed, first_test_batch, loss, trainer, 1, device)
    return timed.rate


def theirs() -> float:
    """`d2l_rate` in a process of its own."""
    return float(subprocess.check_output([sys.executable, "-m", "benchmarks.mxnet_loops"]))


def against_d2l() -> dict:
    """On one device: D2L's loop first, ours second."""
    from d2lmgpu import mxnet as d2l

    return {"pairs": {"LeNet, equal arithmetic": pairs(theirs, partial(lenet.rate, d2l, 1))}}


def two_devices() -> dict:
    """One device first, two second."""
    from d2lmgpu import mxnet as d2l

    return {
        "pairs": {"LeNet from scratch": lenet.two_devices(d2l, "mxnet")},
        "time of an update, two devices": lenet.where_time_goes(d2l),
    }


if __name__ == "__main__":
    print(d2l_rate())
