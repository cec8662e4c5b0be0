"""The pieces of data parallelism, against NumPy."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from lenet_start import random_batch, start


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_allreduce_leaves_the_sum_on_every_device_in_place(d2l, array, numpy, k):
    values = [np.random.RandomState(i).rand(5, 3) for i in range(k)]
    data = [d2l.get_params([array(v)], device)[0] for v, device in zip(values, d2l.devices(k))]
    grads = [p.grad for p in data]
    for grad, value in zip(grads, values):
        grad[:] = array(value)
    d2l.allreduce(list(grads))
    for p in data:  # through the parameters: the gradients themselves changed
        np.testing.assert_allclose(numpy(p.grad), sum(values), rtol=1e-12)


@pytest.mark.parametrize("n, k", [(24, 2), (5, 2), (7, 3), (3, 8), (0, 2), (1, 1)])
def test_split_batch_keeps_every_example_in_order(d2l, array, numpy, n, k):
    X, y = np.arange(n * 6.0).reshape(n, 6), np.arange(n)
    X_shards, y_shards = d2l.split_batch(array(X), array(y), d2l.devices(k))
    assert [len(s) for s in X_shards] == [len(s) for s in np.array_split(X, k)]
    np.testing.assert_array_equal(np.concatenate([numpy(s) for s in X_shards]), X)
    np.testing.assert_array_equal(np.concatenate([numpy(s) for s in y_shards]), y)


def test_replicas_are_copies_also_on_the_device_where_the_parameters_are(d2l, array, numpy):
    p = array(np.ones(3))
    device = p.ctx if hasattr(p, "ctx") else p.device
    a, b = (d2l.get_params([p], device)[0] for _ in range(2))
    a.grad[:] = 1
    d2l.sgd([a], lr=1.0, batch_size=1)
    np.testing.assert_array_equal(numpy(a), 0)
    np.testing.assert_array_equal(numpy(b), 1)
    np.testing.assert_array_equal(numpy(p), 1)
    np.testing.assert_array_equal(numpy(b.grad), 0)


def test_a_copy_of_a_copy_collects_gradients_of_its_own(d2l, array, numpy):
    once = d2l.get_params([array(p) for p in start("float32")], d2l.try_gpu(0))
    twice = d2l.get_params(once, d2l.try_gpu(1))
    X, y = (array(a) for a in random_batch(4, "float32", 0))
    d2l.parallel(d2l.forward_backward, *d2l.split_batch(X, y, [d2l.try_gpu(1)]), [twice])
    assert all(abs(numpy(p.grad)).max() > 0 for p in twice)
    assert all(abs(numpy(p.grad)).max() == 0 for p in once)


def test_accuracy_counts(d2l, array):
    y_hat = array(np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]]))
    assert d2l.accuracy(y_hat, array(np.array([1, 0, 0]))) == 2


def test_accuracy_compares_one_with_one(d2l, array):
    with pytest.raises(ValueError, match=r"y_hat is for \(4,\) examples, y for \(4, 1\)"):
        d2l.accuracy(array(np.zeros((4, 2))), array(np.zeros((4, 1))))


def test_parallel_runs_all_devices_in_order_and_passes_errors_on(d2l):
    assert d2l.parallel(lambda a, b: a + b, [1, 2, 3], [10, 20, 30]) == [11, 22, 33]
    with pytest.raises(ZeroDivisionError):
        d2l.parallel(lambda a: 1 / a, [1, 0])


FORKED = """
import importlib, os, sys
os.environ["D2LMGPU_DEVICES"] = "cpu:2"
d2l = importlib.import_module("d2lmgpu." + sys.argv[1])
assert d2l.parallel(abs, [-1, -2]) == [1, 2]
child = os.fork()
if not child:
    print(d2l.parallel(abs, [-3, -4]), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_parallel_runs_in_a_fork_too(framework):
    """A fork takes no threads along; a hang could not be ended from within."""
    out = subprocess.run(
        [sys.executable, "-c", FORKED, framework], capture_output=True, text=True, timeout=60
    )
    assert out.stdout == "[3, 4]\n", out.stderr


def test_what_the_caller_has_switched_on_or_off_holds_on_every_device(d2l, framework):
    if framework == "torch":
        import torch

        def seen(_):
            return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")

        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            assert d2l.parallel(seen, [0]) == [(False, True)]
            assert d2l.parallel(seen, [0, 1]) == [(False, True)] * 2
        assert d2l.parallel(seen, [0, 1]) == [(True, False)] * 2
        return
    from mxnet import autograd

    def seen(_):
        return autograd.is_recording(), autograd.is_training()

    with autograd.record(train_mode=False):
        assert d2l.parallel(seen, [0, 1]) == [(True, False)] * 2
    assert d2l.parallel(seen, [0]) == [(False, False)]
    assert d2l.parallel(seen, [0, 1]) == [(False, False)] * 2


def test_a_cpu_device_is_one_thread_whatever_the_machine_offers(framework):
    code = {
        "torch": "import torch; torch.cuda.is_available = lambda: True; import d2lmgpu.torch;"
        "print(torch.get_num_threads())",
        "mxnet": "import d2lmgpu.mxnet, os; print(os.environ['OMP_NUM_THREADS'])",
    }[framework]
    environ = os.environ | {"D2LMGPU_DEVICES": "cpu", "OMP_NUM_THREADS": "3"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True
    )
    assert result.stdout == "1\n", result.stderr


def test_parallel_overlaps_on_two_cores(d2l):
    import threading

    if d2l.sharing(2) != "in parallel":
        assert d2l.sharing(2) == "simulated"  # one core: nothing can overlap
        return
    both = threading.Barrier(2)
    d2l.parallel(lambda _: both.wait(timeout=60), [0, 1])  # passes only if both are inside


def test_loader_keeps_the_last_batch_and_depends_on_the_seed_only(d2l, numpy):
    def order(seed):
        d2l.seed(seed)
        train_iter, _ = d2l.load_data_fashion_mnist(200)
        return [numpy(y) for _, y in train_iter], [numpy(y) for _, y in train_iter]

    first, second = order(1)
    assert [len(y) for y in first] == [200, 200, 112]
    assert (np.concatenate(first) != np.concatenate(second)).any()
    assert all((a == b).all() for a, b in zip(first, order(1)[0]))
    assert (np.concatenate(first) != np.concatenate(order(2)[0])).any()


def test_resnet18_shapes_and_width(d2l, array, numpy, framework):
    net = d2l.resnet18(10, width=4)
    if framework == "mxnet":
        net.initialize()
    X = array(np.zeros((2, 1, 28, 28), "float32"))
    assert net(X).shape == (2, 10)
    params = (
        net.parameters()
        if framework == "torch"
        else [p.data() for p in net.collect_params().values() if p.grad_req != "null"]
    )
    stem, blocks, head = 4 * 9 + 4 + 2 * 4, 0, 32 * 10 + 10
    channels = [4, 4, 4, 8, 8, 16, 16, 32, 32]
    for a, b in itertools.pairwise(channels):
        blocks += (a * b * 9 + b) + (b * b * 9 + b) + 4 * b + ((a * b + b) if a != b else 0)
    assert sum(int(np.prod(p.shape)) for p in params) == stem + blocks + head


def test_resize(d2l, numpy):
    train_iter, _ = d2l.load_data_fashion_mnist(16, resize=32)
    X, _ = next(iter(train_iter))
    assert X.shape == (16, 1, 32, 32) and 0 <= numpy(X).min() < numpy(X).max() <= 1
