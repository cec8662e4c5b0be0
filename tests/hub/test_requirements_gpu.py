"""requirements-gpu.txt, proven without a GPU: installed afresh, imported, used on the CPU.

Downloads about 2 GB, so it runs only when asked for: ``make test-gpu-requirements``. Only the
driver's own library is a stand-in, one that reports no GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_stub import build

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    os.environ.get("D2LMGPU_TEST_GPU_REQUIREMENTS") != "1",
    reason="installing requirements-gpu.txt takes 2 GB: make test-gpu-requirements",
)
CODE = """
from d2lmgpu.machine import cuda_libraries
cuda_libraries.preload()
import mxnet as mx
from mxnet import autograd, gluon, np, npx
npx.set_np()
assert mx.__version__ == "1.9.1"
features = mx.runtime.Features()
for name in ("CUDA", "CUDNN", "NCCL", "DIST_KVSTORE"):
    assert features.is_enabled(name), name
assert npx.num_gpus() == 0
# The gradient of a squared sum on two CPU devices, by hand: 2 x.
for device in (mx.cpu(0), mx.cpu(1)):
    x = np.arange(6.0, ctx=device)
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    assert (x.grad.asnumpy() == 2 * x.asnumpy()).all()
net = gluon.nn.Conv2D(4, kernel_size=3)
net.initialize(ctx=mx.cpu())
assert net(np.ones((2, 1, 8, 8))).shape == (2, 4, 6, 6)
print("ran on the CPU")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of a fresh environment with requirements-gpu.txt in it."""
    folder = tmp_path_factory.mktemp("gpu")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    install = [python, "-m", "pip", "install", "-q", "-r", ROOT / "requirements-gpu.txt"]
    subprocess.run(install, check=True)
    return python


def run(python, code, driver=None):
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    if driver:
        environ["LD_LIBRARY_PATH"] = str(driver)
    return subprocess.run([python, "-c", code], env=environ, capture_output=True, text=True)


def test_mxnet_cu112_imports_and_computes_with_a_driver_that_has_no_gpu(python, tmp_path):
    build(tmp_path)
    answer = run(python, CODE, driver=tmp_path)
    assert answer.stdout == "ran on the CPU\n", answer.stderr


def test_without_preloading_the_import_fails(python, tmp_path):
    """What makes the test above one of preload: the linker alone does not find the wheels."""
    build(tmp_path)
    answer = run(python, "import mxnet", driver=tmp_path)
    assert answer.returncode != 0
    assert "cannot open shared object file" in answer.stderr


def test_without_a_driver_the_error_says_so(python):
    answer = run(python, "from d2lmgpu.machine import cuda_libraries as c; c.preload()")
    assert "this machine has no NVIDIA driver" in answer.stderr


def test_a_missing_library_is_named(python, tmp_path):
    build(tmp_path)
    (library,) = python.parent.parent.glob("lib/*/site-packages/nvidia/curand/lib/libcurand.so.10")
    library.rename(library.with_suffix(".away"))
    try:
        answer = run(python, CODE, driver=tmp_path)
    finally:
        library.with_suffix(".away").rename(library)
    assert "pip install nvidia-curand-cu11==10.3.0.86" in answer.stderr
