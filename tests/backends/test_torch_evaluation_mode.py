"""Whoever measures an accuracy finds the network afterwards as it was."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from d2lmgpu import torch as d2l

X, y = torch.rand(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
BATCHES = [(X[:4], y[:4]), (X[4:], y[4:])]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.9), nn.Linear(8, 3))


def partly_frozen():
    """Training, but for its normalization, as those who fine-tune have it."""
    network = net().train()
    network[1].eval()
    return network


@pytest.mark.parametrize("evaluate", [d2l.evaluate_accuracy_gpu, d2l.evaluate_accuracy_gpus])
@pytest.mark.parametrize(
    "make",
    [lambda: net().train(), lambda: net().eval(), partly_frozen],
    ids=["train", "eval", "frozen"],
)
def test_each_module_is_in_its_own_mode_again(evaluate, make):
    network = make()
    before = [module.training for module in network.modules()]
    state = {name: value.clone() for name, value in network.state_dict().items()}
    accuracy = evaluate(network, BATCHES)
    assert [module.training for module in network.modules()] == before
    with torch.no_grad():
        right = (network.eval()(X).argmax(1) == y).float().mean()
    assert accuracy == pytest.approx(float(right)), "it was not in evaluation mode meanwhile"
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in state.items())


def interrupted():
    yield BATCHES[0]
    raise KeyboardInterrupt


@pytest.mark.parametrize("evaluate", [d2l.evaluate_accuracy_gpu, d2l.evaluate_accuracy_gpus])
@pytest.mark.parametrize(
    "batches, error",
    [
        (interrupted, KeyboardInterrupt),
        (lambda: [BATCHES[0], (torch.rand(2, 5), y[:2])], RuntimeError),
        (lambda: [(X, y), (X, y[:2])], ValueError),
    ],
    ids=["interrupted", "of another shape", "of other labels"],
)
def test_so_it_is_after_an_evaluation_that_came_to_no_end(evaluate, batches, error):
    network = partly_frozen()
    before = [module.training for module in network.modules()]
    with pytest.raises(error):
        evaluate(network, batches())
    assert [module.training for module in network.modules()] == before


def test_a_function_has_no_mode():
    assert d2l.evaluate_accuracy_gpu(lambda X: X[:, :3], BATCHES) >= 0


MXNET = """
from mxnet import autograd, gluon, init, np, npx
from d2lmgpu import mxnet as d2l
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(8), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.5), gluon.nn.Dense(3))
net.initialize(init.Xavier())
X, y = np.random.uniform(size=(60, 4)), np.array([0, 1, 2] * 20)
alone = d2l.evaluate_accuracy_gpu(net, [(X, y)])
with autograd.record():
    inside = [d2l.evaluate_accuracy_gpu(net, [(X, y)]) for _ in range(5)]
    assert autograd.is_recording() and autograd.is_training()
print(set(inside) == {alone})
"""


def test_mxnet_evaluates_in_prediction_mode_also_inside_of_a_record():
    out = subprocess.run([sys.executable, "-c", MXNET], capture_output=True, text=True)
    assert out.stdout == "True\n", out.stderr
