"""What silently went wrong once is refused, by an error of ours."""

import subprocess
import sys

import numpy as np
import pytest
from lenet_start import random_batch, start

NESTED = """
import importlib, os, sys
os.environ["D2LMGPU_DEVICES"] = "cpu:8"
d2l = importlib.import_module("d2lmgpu." + sys.argv[1])
def inner(i):
    return d2l.parallel(lambda j: 10 * i + j, [1, 2])
print(d2l.parallel(lambda i: d2l.parallel(lambda j: i + j, [1]), [1, 2]))
try:
    d2l.parallel(inner, [1, 2, 3])
except ValueError as error:
    print(type(error).__name__)
"""


def test_parallel_inside_parallel_ends(framework):
    """In a process of its own, since a hang could not be ended from within."""
    out = subprocess.run(
        [sys.executable, "-c", NESTED, framework], capture_output=True, text=True, timeout=60
    )
    assert out.stdout == "[[2], [3]]\nDeviceError\n", out.stderr


@pytest.fixture
def lenet(d2l, array):
    """Replicas of LeNet on k devices."""
    params = [array(p) for p in start("float32")]
    return lambda k: [d2l.get_params(params, device) for device in d2l.devices(k)]


def test_allreduce_refuses_one_array_twice(d2l, array, numpy):
    x, y = array(np.ones(3)), array(np.ones(3))
    for aliases in ([x, x, x], [y, x, y], [x, x[1:2]]):
        with pytest.raises(ValueError, match=r"copies|shapes"):
            d2l.allreduce(aliases)
    np.testing.assert_array_equal(numpy(x), 1)
    p = d2l.get_params([x], d2l.try_gpu(0))[0]
    with pytest.raises(ValueError, match="memory"):
        d2l.allreduce([p.grad, p.grad])


def test_neighbours_in_one_block_are_not_aliases(d2l, array, numpy):
    block = array(np.arange(6.0).reshape(2, 3))
    d2l.allreduce([block[0], block[1]])
    np.testing.assert_array_equal(numpy(block), [[3, 5, 7]] * 2)
    d2l.allreduce([array(np.zeros(0)), array(np.zeros(0))])


@pytest.mark.parametrize("unlike", [(np.ones(3), np.ones(4)), (np.ones(3), np.ones(3, "float32"))])
def test_allreduce_refuses_unlike_arrays_before_it_adds(d2l, array, numpy, unlike):
    arrays = [array(a) for a in unlike]
    with pytest.raises(ValueError, match=r"shapes|types"):
        d2l.allreduce(arrays)
    np.testing.assert_array_equal(numpy(arrays[0]), 1)


def test_replicas_that_are_one_are_not_trained(d2l, array, lenet):
    (params,), (X, y) = lenet(1), (array(a) for a in random_batch(6, "float32", 0))
    with pytest.raises(ValueError, match="memory"):
        d2l.train_batch(X, y, [params, params], d2l.devices(2), 0.1)


@pytest.mark.parametrize("label", [10, 99, -1])
def test_labels_that_are_no_class(d2l, array, numpy, lenet, label):
    replicas, (X, y) = lenet(2), random_batch(6, "float32", 0)
    y[4] = label
    with pytest.raises(ValueError, match="0 to 9"):
        d2l.train_batch(array(X), array(y), replicas, d2l.devices(2), 0.1)
    with pytest.raises(ValueError, match="0 to 9"):
        d2l.forward_backward(array(X), array(y), replicas[0])
    for p, first in zip(replicas[0], start("float32")):
        np.testing.assert_array_equal(numpy(p), first)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "1", None, True])
def test_seeds(d2l, seed):
    with pytest.raises(ValueError, match="from 0"):
        d2l.seed(seed)


def test_a_function_is_evaluated_where_its_images_are(d2l, array):
    X, y = array(np.eye(4, dtype="float32")), array(np.array([0, 1, 2, 0]))
    assert d2l.evaluate_accuracy_gpu(lambda X: X, [(X, y)]) == 0.75
    assert d2l.evaluate_accuracy_gpu(lambda X: X, [(X, y)], d2l.try_gpu(1)) == 0.75


def test_nothing_to_evaluate(d2l):
    with pytest.raises(ValueError, match="no examples"):
        d2l.evaluate_accuracy_gpu(lambda X: X, [])
    with pytest.raises(ValueError, match="evaluate_accuracy_gpu"):
        d2l.evaluate_accuracy_gpus(lambda X: X, [])


def test_how_no_devices_share_time_cannot_be_told(d2l):
    for k in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="from 1 up"):
            d2l.sharing(k)


@pytest.mark.parametrize(
    "args, kwargs, out",
    [
        ((6,), {}, (6, 8)),
        ((6, True, 2), {}, (6, 4)),
        ((6,), {"use_1x1conv": True, "strides": 2}, (6, 4)),
        ((3, 6), {"use_1x1conv": True, "strides": 2}, (6, 4)),
        ((3, 6, True, 2), {}, (6, 4)),
        ((3, 3), {}, (3, 8)),
        ((), {"input_channels": 3, "num_channels": 3}, (3, 8)),
    ],
)
def test_residual_blocks_of_both_editions(d2l, array, framework, args, kwargs, out):
    block = d2l.Residual(*args, **kwargs)
    channels, side = out
    both = (len(args) > 1 and type(args[1]) is int) or "input_channels" in kwargs
    if framework == "mxnet":
        block.initialize()
    elif both:  # its layers can be given initial weights at once, as D2L's code does
        from torch import nn

        assert type(block.conv1) is nn.Conv2d and block.training
    inputs = 6 if args == (6,) and not kwargs else 3
    X = array(np.zeros((2, inputs, 8, 8), "float32"))
    assert block(X).shape == (2, channels, side, side)
    if both:
        with pytest.raises(Exception):  # noqa: B017  (the framework's own)
            d2l.Residual(*args, **kwargs)(array(np.zeros((2, 5, 8, 8), "float32")))


def test_parameters_without_gradients(d2l, array):
    with pytest.raises(ValueError, match="grad"):
        d2l.sgd([array(np.ones(3))], 0.1, 4)


def test_the_seed_reaches_processes_that_are_started(d2l):
    """Workers load the order of the seed that was set before they were started."""
    d2l.seed(5)
    program = "from d2lmgpu.machine import seed; print(seed.current_seed())"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout == "5\n", out.stderr
