"""The same tests for both backends, one framework a process: ``pytest tests/backends --framework``.

``test_torch_*.py`` and ``test_mxnet_*.py`` hold what only one framework has.
"""

import importlib
import os

import numpy as np
import pytest

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
