"""Runs as a reader starts them: from a real kernel, in the thread that runs its cells."""

import pytest
from jupyter_kernel import Kernel
from recording import SECONDS
from soaking import sample

CELL = """
from mxnet import np, npx
from mxnet.gluon import nn
{numpy}
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.runner import Runner
net = nn.Dense(1)
net.initialize()
data = np.ones((2, 3))

def train(num_gpus, batch_size, lr):
    from types import SimpleNamespace
    accuracy = float(net(data).size) / 2
    return SimpleNamespace(num_samples=int(data.sum()), accuracies=[accuracy], seconds=[1])

outcomes = []
runner = Runner(on_end=outcomes.append)
runner.start(train, {modules}, num_gpus=1, batch_size=8, lr=0.1)
assert runner.wait({seconds})
POOL.end_spare()
print(outcomes[0].status, outcomes[0].message, outcomes[0].result)
"""

WRONG = """
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.runner import Runner

def half(batch_size):
    return batch_size / undefined_name

def train(num_gpus, batch_size, lr):
    half(batch_size)

outcomes = []
runner = Runner(on_end=outcomes.append)
runner.start(train, num_gpus=1, batch_size=8, lr=0.1)
assert runner.wait({seconds})
POOL.end_spare()
print(outcomes[0].message)
"""


@pytest.fixture
def kernel(tmp_path):
    with Kernel(tmp_path) as kernel:
        yield kernel.client


@pytest.mark.parametrize(
    "numpy, modules",
    sample(1, [("from d2lmgpu import mxnet as d2l", ("mxnet",)), ("npx.set_np()", ())]),
    ids=["d2lmgpu", "MXNet alone"],
)
def test_global_arrays_and_nets_of_mxnet_reach_the_run(kernel, numpy, modules):
    text = printed(kernel, CELL.format(numpy=numpy, modules=modules, seconds=SECONDS))
    assert text.startswith("finished") and "'num_samples': 6" in text, text


def test_an_error_names_the_line_of_the_cell(kernel):
    text = printed(kernel, WRONG.format(seconds=SECONDS))
    line = WRONG.strip().splitlines().index("    return batch_size / undefined_name") + 1
    assert f"in half, line {line}: `return batch_size / undefined_name`" in text


def printed(kernel, cell):
    """What a cell prints."""
    texts = []
    reply = kernel.execute_interactive(
        cell,
        timeout=SECONDS,
        output_hook=lambda message: texts.append(message["content"].get("text", "")),
    )
    assert reply["content"]["status"] == "ok", reply["content"]
    return "".join(texts)
