"""The two backends: the same names and signatures, and the same numbers from the same weights."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
FRAMEWORKS = ["torch", "mxnet"]
STEPS = 20


def in_own_process(program, *args):
    """Output of ``program``: with MXNet imported, torch would fall to one thread."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
        cwd=FOLDER,
    ).stdout


PUBLIC = """
import importlib, inspect, json, sys
module = importlib.import_module("d2lmgpu." + sys.argv[1])
names = {n: v for n, v in vars(module).items() if callable(v) and not n.startswith("_")}
own = {n for n, v in names.items() if v.__module__.startswith(module.__name__ + '.')}
assert own <= set(module.__all__), own - set(module.__all__)
print(json.dumps({n: str(inspect.signature(getattr(module, n))) for n in module.__all__}))
"""
# What a framework calls its array and its network.
TYPES = re.compile(r"torch\.Tensor|mxnet\.numpy\.ndarray|[\w.]+\.Sequential")


def test_public_names_and_signatures_are_the_same():
    torch, mxnet = (
        json.loads(in_own_process(PUBLIC, framework), object_hook=_without_types)
        for framework in FRAMEWORKS
    )
    assert len(torch) > 25
    assert torch == mxnet


def _without_types(signatures):
    return {name: TYPES.sub("its own", text) for name, text in signatures.items()}


TRAIN = """
import importlib, sys
import numpy as np
from lenet_start import start
framework, out, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
d2l = importlib.import_module("d2lmgpu." + framework)
from d2lmgpu.data.datasets import fashion_mnist
if framework == "torch":
    from torch import tensor as array, no_grad
else:
    from mxnet import np as mxnp
    array = lambda x: mxnp.array(x, dtype=x.dtype)
data, devices = fashion_mnist(6000, 1000), d2l.devices(2)
params = [d2l.get_params([array(p) for p in start("float64")], device) for device in devices]
to_numpy = lambda x: x.asnumpy() if hasattr(x, "asnumpy") else x.detach().numpy()
thetas, losses = [], []
for i in range(steps):
    rows = slice(128 * i, 128 * (i + 1))
    X, y = array(data.X_train[rows].astype("float64")), array(data.y_train[rows])
    p = to_numpy(d2l.lenet(X, params[0]))
    p = np.exp(p - p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    losses.append(-np.log(p[np.arange(128), data.y_train[rows]]).mean())
    d2l.train_batch(X, y, params, devices, 0.1)
    thetas.append(np.concatenate([to_numpy(q).ravel() for q in params[0]]))
np.savez(out, thetas=thetas, losses=losses)
"""


def test_both_frameworks_train_lenet_alike_in_float64(tmp_path):
    runs = []
    for framework in FRAMEWORKS:
        in_own_process(TRAIN, framework, tmp_path / f"{framework}.npz", STEPS)
        runs.append(np.load(tmp_path / f"{framework}.npz"))
    a, b = (run["thetas"] for run in runs)
    assert a.dtype == b.dtype == np.float64 and len(a) == STEPS
    difference = np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1)
    assert difference.max() <= 1e-9, difference
    np.testing.assert_allclose(runs[0]["losses"], runs[1]["losses"], rtol=1e-8)
    assert runs[0]["losses"][0] > 2 and runs[0]["losses"][-1] < 1.5


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_package_imports_no_framework(framework):
    assert "False" in in_own_process(
        "import sys, d2lmgpu.machine.devices, d2lmgpu.collectives.execution, d2lmgpu.data.datasets;"
        "print(sys.argv[1] in sys.modules)",
        framework,
    )


MISSING = """
import importlib, sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
try:
    importlib.import_module("d2lmgpu." + sys.argv[1])
except ModuleNotFoundError as error:
    print(error.name, "|", error)
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_missing_framework_is_named_with_its_remedy(framework):
    name, message = in_own_process(MISSING, framework).split(" | ")
    assert name == framework
    assert f"{framework} is not installed here. To install it: pip install {framework}==" in message
