"""A watched script has PyTorch's compiler if it compiles, and does without it if it does not."""

import os
import subprocess
import sys

import pytest

from d2lmgpu.process.addresses import LOOPBACK_INTERFACE

BEGIN = """
import os, sys
from d2lmgpu.watch.compiler import import_it_late

import_it_late()
import torch
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel

assert hasattr(torch.optim.SGD.step, "__wrapped__")

def begin():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, X):
        return 2 * self.layer(X)

graphs = []

def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward

def is_imported():
    return "torch._dynamo" in sys.modules

def train(compiled_by=None, **setting):
    torch.manual_seed(0)
    net, X, y = Net(), torch.randn(8, 3), torch.randn(8, 1)
    if compiled_by:
        net.compile(backend=compiled_by)
    ddp = DistributedDataParallel(net)
    trainer = getattr(torch.optim, setting.pop("optimizer"))(ddp.parameters(), lr=0.1, **setting)
    for _ in range(3):
        trainer.zero_grad()
        nn.functional.mse_loss(ddp(X), y).backward()
        trainer.step()
        assert torch.is_grad_enabled()
    return net.layer.weight.detach().clone()
"""
TRAINS = """
begin()
SETTINGS = [
    {"optimizer": "SGD", "momentum": 0.9},
    {"optimizer": "AdamW"},
    {"optimizer": "AdamW", "foreach": False},
    {"optimizer": "Adam", "foreach": True},
    {"optimizer": "Adagrad"},
]
without = [train(**setting) for setting in SETTINGS]
assert not is_imported()

import torch._dynamo
for weight, setting in zip(without, SETTINGS):
    assert torch.equal(weight, train(**setting))
    torch.compiler.reset()
    assert torch.allclose(weight, train(compiled_by=backend, **setting), atol=1e-6)
assert len(graphs) == len(SETTINGS)
"""
COMPILES = """
begin()
train(compiled_by=backend, optimizer="SGD")
assert is_imported() and len(graphs) == 1
"""
SETS = """
CONFIG = "config.optimize_ddp = 'python_reducer'"
SETTINGS = [
    "",
    f"torch._dynamo.{CONFIG}",
    f"import torch._dynamo.config; torch._dynamo.{CONFIG}",
    f"from torch import _dynamo; _dynamo.{CONFIG}",
]

def asks(setting, after):
    begin()
    if after:
        DistributedDataParallel(nn.Linear(3, 1))
        assert not is_imported()
    exec(setting)
    asked = DistributedDataParallel(nn.Linear(3, 1))._use_python_reducer
    assert asked == is_imported() == bool(setting), (setting, after, asked, is_imported())

for setting in SETTINGS:
    for after in (False, True):
        if not (process := os.fork()):
            asks(setting, after)
            os._exit(0)
        assert os.waitpid(process, 0)[1] == 0, (setting, after)
"""
DIFFERENTIABLE = """
for differentiable in (False, True) * 2:
    W = torch.ones(2, requires_grad=True)
    net = W.detach().clone().requires_grad_()
    trainer = torch.optim.SGD([net], lr=0.5, differentiable=differentiable)
    net.grad = 2 * W
    try:
        with torch.set_grad_enabled(not differentiable):
            trainer.step()
        told = "no error"
    except RuntimeError as error:
        told = str(error)
    print(differentiable, torch.is_grad_enabled(), told, net.tolist())
    import torch._dynamo
"""


def outcome(source):
    """What a process of its own prints, with PyTorch's compiler put off."""
    command = [sys.executable, "-c", BEGIN + source]
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": LOOPBACK_INTERFACE}
    process = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("source", [TRAINS, COMPILES], ids=["trains", "compiles"])
def test_who_does_not_compile_trains_without_it_as_with_it(source):
    outcome(source)


def test_ddp_is_told_what_the_script_has_set():
    outcome(SETS)


def test_a_step_may_be_differentiated_only_if_that_is_asked_for():
    lines = outcome(DIFFERENTIABLE).splitlines()
    assert lines[:2] == lines[2:] and len(set(lines)) == 2
