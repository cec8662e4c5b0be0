"""The Gluon chapters' own ``train_batch``: k devices compute what one device computes.

The oracle uses neither ``Trainer`` nor a second device: one device runs the shards one after
another, and NumPy adds up the gradients and updates the weights.
"""

from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest

from d2lmgpu import mxnet as d2l  # first: it sets the threads of MXNet

from mxnet import autograd, gluon, init  # isort: skip
from mxnet import np as mxnp  # isort: skip

CHAPTERS = Path(__file__).parents[2] / "chapters"
LR = 0.1
KS = [1, 2, 3, 4, 8]
BATCHES = {"even": (24, 24, 24), "ragged": (13, 17, 11), "last below k": (9, 8, 1)}
BOUNDS = {"float32": 1e-5, "float64": 1e-9}
NETS = ["resnet18", "cnn"]
SHAPE = (1, 16, 16)  # smaller than the chapters' images: the file stays quick


@cache
def chapter(name):
    """What the cells of a chapter define that are tagged ``save`` or ``define``."""
    namespace = {}
    for cell in nbformat.read(CHAPTERS / name, as_version=4).cells:
        if {"save", "define"} & set(cell.metadata.get("tags", [])):
            exec(cell.source, namespace)
    return namespace


def functions(name):
    return chapter("concise/mxnet.ipynb" if name == "resnet18" else "lab/gluon-mnist.ipynb")


def batches(sizes, dtype):
    for i, n in enumerate(sizes):
        random = np.random.RandomState(i)
        yield random.uniform(size=(n, *SHAPE)).astype(dtype), random.randint(0, 10, size=n)


def build(name, dtype, devices):
    """A net on ``devices`` with a He start that depends on nothing but the shapes."""
    net = functions(name)[name](10, width=4) if name == "resnet18" else functions(name)[name]()
    net.cast(dtype)
    net.initialize(init.Zero(), ctx=devices)  # the default draws in float32 only
    net(mxnp.zeros((1, *SHAPE), dtype=dtype, ctx=devices[0]))
    random = np.random.RandomState(0)
    for p in net.collect_params().values():
        if p.name.endswith("weight"):
            std = np.sqrt(2 / np.prod(p.shape[1:]))
            p.set_data(to_mx(random.normal(0, std, p.shape).astype(dtype)))
    return net


def to_mx(x):
    return mxnp.array(x, dtype=x.dtype)


def split_params(net):
    """The parameters that gradients change, and the running statistics that they do not."""
    params = list(net.collect_params().values())
    return [p for p in params if p.grad_req != "null"], [p for p in params if p.grad_req == "null"]


def vector(arrays):
    return np.concatenate([a.ravel() for a in arrays]) if arrays else np.zeros(0)


@cache
def oracle(name, k, sizes, dtype):
    """``(start, parameters, [running statistics of replica 0, 1, …])`` after the updates."""
    device = d2l.cpu(0)
    net = build(name, dtype, [device])
    learned, running = split_params(net)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    start = vector([p.data().asnumpy() for p in learned])
    stats = [[p.data().asnumpy() for p in running] for _ in range(k)]
    for update, (X, y) in enumerate(batches(sizes, dtype)):
        total = [np.zeros(p.shape, dtype) for p in learned]
        ends = np.cumsum([len(y) // k + (i < len(y) % k) for i in range(k)])
        for replica, rows in enumerate(np.split(np.arange(len(y)), ends[:-1])):
            if not len(rows):
                continue
            for p, value in zip(running, stats[replica]):
                p.set_data(to_mx(value))
            with autograd.record():
                output = loss(net(to_mx(X[rows])), to_mx(y[rows])).sum()
            output.backward()
            total = [t + p.grad().asnumpy() for t, p in zip(total, learned)]
            stats[replica] = [p.data().asnumpy() for p in running]
        if update == 0:  # Trainer's first step copies everything from the first device
            stats = [stats[0]] * k
        # MXNet's sgd keeps lr and 1/batch size in single precision, whatever the weights are.
        rate = np.dtype(dtype).type(np.float64(np.float32(LR)) * np.float32(1 / len(y)))
        for p, gradient in zip(learned, total):
            p.set_data(to_mx(p.data().asnumpy() - rate * gradient))
    return start, vector([p.data().asnumpy() for p in learned]), [vector(s) for s in stats]


def trained(name, k, sizes, dtype, kvstore):
    """The parameters and running statistics of every replica after the chapter's own steps."""
    devices = d2l.devices(k)
    net = build(name, dtype, devices)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": LR}, kvstore=kvstore)
    for X, y in batches(sizes, dtype):
        functions(name)["train_batch"](net, to_mx(X), to_mx(y), trainer, devices)
    learned, running = split_params(net)
    return [
        [vector([p.data(d).asnumpy() for p in ps]) for d in devices] for ps in (learned, running)
    ]


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("kvstore", ["local", "device"])
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("sizes", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("name", NETS)
def test_k_devices_equal_one(name, k, sizes, dtype, kvstore):
    # Without batch normalization, one device may as well take the whole batch at once.
    num_shards = k if name == "resnet18" else 1
    start, expected, expected_stats = oracle(name, num_shards, sizes, dtype)
    replicas, stats = trained(name, k, sizes, dtype, kvstore)
    assert expected.dtype == replicas[0].dtype == dtype and np.isfinite(expected).all()
    assert distance(expected, start) > 1e-3
    for replica in replicas:
        assert distance(replica, expected) <= BOUNDS[dtype]
        assert (replica == replicas[0]).all()
    if name == "resnet18":
        for ours, theirs in zip(stats, expected_stats, strict=True):
            assert distance(ours, theirs) <= BOUNDS[dtype]


def test_running_statistics_are_each_replicas_own():
    _, stats = trained("resnet18", 2, BATCHES["even"], "float32", "device")
    assert distance(stats[0], stats[1]) > 1e-3


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("n", [1, 7, 16])
def test_every_test_image_counts_once(k, n):
    devices = d2l.devices(k)
    net = build("resnet18", "float32", devices)
    (X, _), (Y, _) = batches((n, n), "float32")
    answers = [net(to_mx(x).as_in_ctx(devices[0])).asnumpy().argmax(axis=1) for x in (X, Y)]
    labels = [np.where(np.arange(n) % 3 == 0, a, (a + 1) % 10) for a in answers]
    data = [(to_mx(x), to_mx(y)) for x, y in zip((X, Y), labels)]
    right = sum((a == y).sum() for a, y in zip(answers, labels))
    assert functions("resnet18")["evaluate_accuracy_gpus"](net, data) == right / (2 * n)
    valid_batch = functions("cnn")["valid_batch"]
    assert sum(valid_batch(net, x, y, devices) for x, y in data) == right
