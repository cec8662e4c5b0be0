"""The same tests for both backends, one framework a process: ``pytest tests/backends --framework``.

``test_torch_*.py`` and ``test_mxnet_*.py`` hold what only one framework has.
"""

import importlib
import os

import numpy as np
import pytest
from lenet_start import random_batch, start

os.environ["D2LMGPU_DEVICES"] = "cpu:8"
os.environ["D2LMGPU_PROFILE"] = "test"

FRAMEWORKS = ["torch", "mxnet"]


def pytest_addoption(parser):
    parser.addoption("--framework", choices=FRAMEWORKS, default="torch")


def pytest_ignore_collect(collection_path, config):
    only = [f for f in FRAMEWORKS if collection_path.name.startswith(f"test_{f}_")]
    return True if only and only[0] != config.getoption("framework") else None


@pytest.fixture(scope="session")
def framework(pytestconfig):
    return pytestconfig.getoption("framework")


@pytest.fixture(scope="session")
def d2l(framework):
    return importlib.import_module(f"d2lmgpu.{framework}")


@pytest.fixture(scope="session")
def room(framework):
    """Name -> that file of the backend: where its functions look each other up."""
    return lambda name: importlib.import_module(f"d2lmgpu.{framework}.{name}")


@pytest.fixture(scope="session")
def array(framework):
    """NumPy array -> the framework's array on the CPU, of the same type."""
    if framework == "torch":
        import torch

        return torch.tensor
    from mxnet import np as mxnp

    return lambda x: mxnp.array(x, dtype=np.asarray(x).dtype)


@pytest.fixture(scope="session")
def numpy():
    """The framework's array, anywhere -> NumPy array."""

    def convert(x):
        return x.asnumpy() if hasattr(x, "asnumpy") else x.detach().cpu().numpy()

    return convert


@pytest.fixture
def updated(d2l, array, numpy):
    """Parameter vectors of all replicas on ``devices`` after updates on batches of ``sizes``."""

    def run(devices, sizes, dtype, lr=0.1):
        params = [array(p) for p in start(dtype)]
        device_params = [d2l.get_params(params, device) for device in devices]
        for i, n in enumerate(sizes):
            X, y = random_batch(n, dtype, seed=i)
            d2l.train_batch(array(X), array(y), device_params, devices, lr)
        return [np.concatenate([numpy(p).ravel() for p in params]) for params in device_params]

    return run
