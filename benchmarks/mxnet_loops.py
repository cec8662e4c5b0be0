"""MXNet: our loop beside D2L's own, LeNet, on one device and on two."""

import contextlib
import io

from benchmarks.measure import SHAPES, Timed, pairs
from d2lmgpu import mxnet as d2l

from mxnet import gluon, np  # isort: skip  (the backend sets the threads before MXNet is imported)
from mxnet.gluon import nn  # isort: skip


def ours(num_gpus, batch_size=256):
    """Samples/s of LeNet from scratch."""
    d2l.seed(0)
    params = [np.random.normal(0, 0.05, s) if len(s) > 1 else np.zeros(s) for s in SHAPES]
    devices = d2l.devices(num_gpus)
    device_params = [d2l.get_params(params, device) for device in devices]
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)
    timed = Timed(train_iter, d2l.synchronize)
    for X, y in timed:
        d2l.train_batch(X, y, device_params, devices, 0.1)
    return timed.rate


def theirs(batch_size=256):
    """Samples/s of D2L's own loader and multi-GPU loop (``train_ch13``), on one device."""
    import d2l.mxnet as book

    # The files are the data set's own, packed again: their content is right, their SHA-1 is not.
    gluon.utils.check_sha1 = gluon.data.vision.datasets.check_sha1 = lambda path, sha1: True
    net = nn.Sequential()
    net.add(
        nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D(2, 2),
        nn.Dense(128, activation="relu"), nn.Dense(10),
    )  # fmt: skip
    device = [d2l.try_gpu(0)]
    net.initialize(ctx=device)
    train_iter, test_iter = book.load_data_fashion_mnist(batch_size)
    timed = Timed(train_iter, d2l.synchronize)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    with contextlib.redirect_stdout(io.StringIO()):
        first_test_batch = [next(iter(test_iter))]
        book.train_ch13(net, timed, first_test_batch, loss, trainer, 1, device)
    return timed.rate


def against_d2l():
    """On one device: D2L's loop first, ours second."""
    return {"pairs": {"LeNet, equal arithmetic": pairs(theirs, lambda: ours(1))}}


def two_devices():
    """One device first, two second."""
    return {"pairs": {"LeNet from scratch": pairs(lambda: ours(1), lambda: ours(2))}}
