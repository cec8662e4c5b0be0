"""What a remedy is said to give is what ``fits`` says of a training that has it by itself."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from d2lmgpu.torch.memory import fits, remedies

WIDTH = 32


class Block(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.dense, self.options = nn.Linear(WIDTH, WIDTH), options

    def forward(self, X):
        return X + self.dense(self.attention(X, X, X, **self.options)[0])


class Recomputed(Block):
    def forward(self, X):
        return checkpoint(super().forward, X, use_reentrant=False)


def network(kind=Block, **options):
    blocks = nn.Sequential(*[kind(**options) for _ in range(2)])
    return nn.Sequential(nn.Embedding(500, WIDTH), blocks, nn.Linear(WIDTH, 500))


def sharded():
    from torch.distributed.fsdp import fully_shard

    net = network()
    for block in net[1]:
        fully_shard(block)
    return fully_shard(net)


def batch(n):
    return (torch.zeros(n, 64, dtype=torch.int64),)


def loss(net, X):
    return F.cross_entropy(net(X).flatten(0, 1), X.flatten())


def adam(parameters):
    return torch.optim.Adam(parameters)


def adagrad(parameters):
    return torch.optim.Adagrad(parameters)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def test_each_remedy_is_counted_anew():
    fit_of = remedies(network, batch, loss, adam, 4, devices=2, optimizers={"Adagrad": adagrad})
    expected = {
        "as it is": (network, adam, "float32"),
        "mixed precision": (network, adam, "amp float16"),
        "recomputation": (partial(network, Recomputed), adam, "float32"),
        "FSDP": (sharded, adam, "float32"),
        "fused attention": (partial(network, need_weights=False), adam, "float32"),
        "Adagrad": (network, adagrad, "float32"),
    }
    assert fit_of.keys() == expected.keys()
    for name, (net, optimizer, precision) in expected.items():
        assert fit_of[name].peak == fits(net, batch, loss, optimizer, 4, precision, 2).peak, name
    peaks = [fit.peak for fit in fit_of.values()]
    assert peaks == sorted(peaks) and fit_of["as it is"].peak > fit_of["recomputation"].peak


def test_only_what_the_training_can_have_is_offered():
    def dense():
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    given = dense, lambda n: (torch.rand(n, 8),), lambda net, X: net(X).sum()
    assert {*remedies(*given, sgd, 2, "bfloat16")} == {"as it is"}
    assert {*remedies(*given, adam, 2, "bfloat16", devices=2)} == {"as it is", "SGD"}


def test_optimizers_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"^optimizers is \['SGD'\]: give \{name: a function"):
        remedies(network, batch, loss, adam, 2, optimizers=["SGD"])
