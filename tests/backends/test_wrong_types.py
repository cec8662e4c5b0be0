"""Whatever a public function is given, it answers right or raises an error of ours."""

import traceback
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lenet_start import random_batch, start

import d2lmgpu

PACKAGE = str(Path(d2lmgpu.__file__).parent)
FUNCTIONS = [
    "accuracy",
    "allreduce",
    "array",
    "balance",
    "cpu",
    "devices",
    "evaluate_accuracy_gpu",
    "evaluate_accuracy_gpus",
    "forward_backward",
    "get_params",
    "gpu",
    "lenet",
    "load_data_fashion_mnist",
    "load_data_mnist",
    "sharing",
    "parallel",
    "resnet18",
    "Residual",
    "seed",
    "sgd",
    "split_batch",
    "train_batch",
    "try_gpu",
    "check_run",
]


class Cases(list):
    """What there is to draw from; a failure does not print all of it."""

    def __repr__(self):
        return f"{len(self)} cases"


@pytest.fixture(scope="session")
def calls(d2l, array, framework):
    """function -> arguments that are right, made anew at each call."""

    def batch():
        X, y = random_batch(6, "float32", 0)
        return array(X), array(y)

    def replicas(k):
        params = [array(p) for p in start("float32")]
        return [d2l.get_params(params, device) for device in d2l.devices(k)]

    def net():
        net = d2l.resnet18(10, width=1)
        if framework == "mxnet":
            net.initialize()
        return net

    def work(X, y, params, *rest):
        return len(y)

    return {
        "accuracy": lambda: [array(np.eye(6, dtype="float32")), batch()[1]],
        "allreduce": lambda: [[array(np.ones(3)), array(np.ones(3))]],
        "array": lambda: [np.ones(3)],
        "balance": lambda: [work, *batch(), replicas(1)[0], d2l.devices(2), [1, 2]],
        "cpu": lambda: [0],
        "devices": lambda: [2],
        "evaluate_accuracy_gpu": lambda: [net(), [batch()], d2l.try_gpu(0)],
        "evaluate_accuracy_gpus": lambda: [net(), [batch()]],
        "forward_backward": lambda: [*batch(), replicas(1)[0]],
        "get_params": lambda: [[array(np.ones(3))], d2l.try_gpu(1)],
        "gpu": lambda: [0],
        "lenet": lambda: [batch()[0], replicas(1)[0]],
        "load_data_fashion_mnist": lambda: [64, 8],
        "load_data_mnist": lambda: [64, 8],
        "sharing": lambda: [2],
        "parallel": lambda: [lambda *args: args, [1, 2], [3, 4]],
        "resnet18": lambda: [10, 1, 2],
        "Residual": lambda: [2, False, 1],
        "seed": lambda: [3],
        "sgd": lambda: [replicas(1)[0], 0.1, 6],
        "split_batch": lambda: [*batch(), d2l.devices(2), [0.5, 0.5]],
        "train_batch": lambda: [*batch(), replicas(2), d2l.devices(2), 0.1],
        "try_gpu": lambda: [1],
        "check_run": lambda: [2, 64, 0.1, 3],
    }


@pytest.fixture(scope="session")
def others(d2l, array):
    """Arguments that are mostly wrong."""
    values = [
        None,
        True,
        -1,
        0,
        1,
        2,
        7,
        2.5,
        float("nan"),
        float("inf"),
        "2",
        "cpu",
        b"x",
        [],
        [1],
        [None, None],
        (),
        {},
        {0: 1},
        set(),
        object(),
        np.ones(3),
        np.float32(2),
        [0.9, 0.1],
        [[]],
        [[1], [2]],
        ["a", "b"],
        [0.5, None],
    ]
    arrays = [
        np.zeros((6, 1, 28, 28), "float64"),
        np.zeros((6, 3, 28, 28), "float32"),
        np.zeros((6, 1, 20, 20), "float32"),
        np.zeros(6),
        np.zeros(6, "int64"),
        np.full(6, 12),
        np.zeros((6, 2), "int64"),
        np.zeros(()),
        np.zeros(0),
        np.zeros((0, 1, 28, 28), "float32"),
        np.zeros(6, "uint8"),
        np.zeros((6, 10), "float32"),
        np.zeros(6, bool),
    ]
    fresh = [lambda a=a: array(a) for a in arrays]
    lists = [
        lambda: [array(np.ones(3))],
        lambda: [array(np.ones(3)), array(np.ones(4))],
        lambda: [array(np.ones(3)), np.ones(3)],
        lambda: [array(p) for p in start("float32")],
        lambda: d2l.get_params([array(p) for p in start("float64")], d2l.cpu()),
        lambda: d2l.get_params([array(p[:1]) for p in start("float32")], d2l.cpu()),
        lambda: [d2l.get_params([array(p) for p in start("float32")], d2l.cpu())],
        lambda: [[array(np.ones(3))]] * 2,
        lambda: [(array(np.ones((2, 3))), array(np.ones(3)))],
        lambda: [d2l.gpu(7)],
        lambda: d2l.gpu(7),
        lambda: d2l.devices(3),
    ]
    return Cases([lambda v=v: v for v in values] + fresh + lists)


def is_ours(error):
    """Whether an error was raised by the package, as one of its kinds."""
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, ValueError) and raised_in.startswith(PACKAGE)


def test_right_arguments_are_taken(d2l, calls):
    for name in FUNCTIONS:
        getattr(d2l, name)(*calls[name]())


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25, derandomize=True)
@given(data=st.data())
def test_an_answer_or_an_error_of_ours(d2l, calls, others, name, data):
    args = calls[name]()
    for at in data.draw(st.sets(st.integers(0, len(args) - 1), min_size=1, max_size=2)):
        args[at] = data.draw(st.sampled_from(others))()
    args = args[: data.draw(st.integers(1, len(args)))] if data.draw(st.booleans()) else args
    try:
        getattr(d2l, name)(*args)
    except TypeError as error:  # too few arguments: Python's own answer
        assert "missing" in str(error), (args, error)
    except Exception as error:
        assert is_ours(error), (name, args, error)
