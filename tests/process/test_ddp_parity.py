"""DDP on k processes computes what one device computes: the chapter's own ``train_shard``.

The oracle is one device that takes the same shards one after the other and adds the gradients up.
Batch normalization looks at one shard at a time, so running statistics belong to a replica: with
``broadcast_buffers=False``, as in the chapter, each rank's are those of its own shards.
"""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from soaking import sample
from torch.nn import functional as F

from d2lmgpu.course import chapters
from d2lmgpu.launch import launch
from d2lmgpu.torch import resnet18

CHAPTER = Path(__file__).parents[2] / "chapters" / "concise" / "pytorch.ipynb"
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9}
LR = 0.1


def networks():
    """A narrow ResNet-18 with a He start, in either precision."""
    torch.manual_seed(0)
    net = resnet18(10, width=4)
    for layer in net.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.zeros_(layer.bias)
    return [copy.deepcopy(net).to(dtype) for dtype in TOLERANCE]


def global_batches(k):
    """Two batches that k does not divide (for k > 1), and a last one smaller than k."""
    rng = np.random.RandomState(k)
    for n in (2 * k + 1, 3 * k - 1, max(1, k - 1)):
        yield rng.rand(n, 1, 28, 28), rng.randint(0, 10, n)


def vectors(net):
    """All parameters in one vector, and all running statistics in another."""
    parameters = np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])
    return parameters, np.concatenate([b.numpy().ravel() for b in net.buffers()])


def with_ddp(train_shard, nets, batches, lr):
    from torch.nn.parallel import DistributedDataParallel

    parameters = []
    for net in nets:
        dtype = next(net.parameters()).dtype
        net = DistributedDataParallel(net, broadcast_buffers=False)
        trainer = torch.optim.SGD(net.parameters(), lr)
        for X, y in batches:
            train_shard(net, torch.tensor(X, dtype=dtype), torch.tensor(y), trainer)
        parameters.append(vectors(net))
    return parameters


def one_device(net, k, batches):
    """Vectors of the k replicas whose shards one device takes in turn, by plain autograd."""
    replicas = [copy.deepcopy(net) for _ in range(k)]
    dtype = next(net.parameters()).dtype
    for X, y in batches:
        gradients = [torch.zeros_like(p) for p in net.parameters()]
        shards = zip(np.array_split(X, k), np.array_split(y, k))
        for replica, (X_shard, y_shard) in zip(replicas, shards):
            if len(y_shard):
                outputs = replica(torch.tensor(X_shard, dtype=dtype))
                loss = F.cross_entropy(outputs, torch.tensor(y_shard), reduction="sum")
                for total, g in zip(gradients, torch.autograd.grad(loss, replica.parameters())):
                    total += g
        with torch.no_grad():
            for replica in replicas:
                for p, g in zip(replica.parameters(), gradients):
                    p -= LR * g / len(y)
    return [vectors(replica) for replica in replicas]


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def check_ranks(by_rank, nets, k, batches):
    """Every rank has what one device has after the same updates, and all have the same bits."""
    for i, (net, tolerance) in enumerate(zip(nets, TOLERANCE.values())):
        start, _ = vectors(net)
        for rank, (parameters, statistics) in enumerate(one_device(net, k, batches)):
            own, found_statistics = by_rank[rank][i]
            assert own.dtype == parameters.dtype
            assert distance(own, start) > 0.01  # it did learn something
            assert distance(own, parameters) <= tolerance
            assert distance(found_statistics, statistics) <= tolerance
            assert np.array_equal(own, by_rank[0][i][0])  # bit by bit on all ranks


@pytest.mark.parametrize("k", sample(1, [3, 1, 2, 4, 8]))
def test_three_updates_on_k_processes_are_those_of_one_device(k, monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:8")
    train_shard = chapters.load(CHAPTER)["train_shard"]
    nets, batches = networks(), list(global_batches(k))
    by_rank = launch(with_ddp, train_shard, nets, batches, LR, num_processes=k)
    check_ranks(by_rank, nets, k, batches)
