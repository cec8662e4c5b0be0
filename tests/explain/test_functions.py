"""`explain(train, …)`: a function goes to its processes, its devices are seen, the answer shows."""

import re

import numpy as np
import pytest
import torch
from soaking import sample
from torch import distributed as dist
from torch import nn

from d2lmgpu import torch as d2l
from d2lmgpu.launch import launch
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.explain import explain
from d2lmgpu.watch.explain.answer import code
from d2lmgpu.watch.explain.function import uses_launch

SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]


def in_threads(num_gpus, batch_size):
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    params = [d2l.get_params([torch.ones(s) * 0.01 for s in SHAPES], d) for d in devices]
    for _ in range(40):
        for X, y in d2l.load_data_fashion_mnist(batch_size)[0]:
            d2l.train_batch(X, y, params, devices, 0.1)


def alone(batch_size):
    net = nn.Linear(784, 512)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for _ in range(20):
        optimizer.zero_grad()
        net(torch.randn(batch_size, 784)[rank::world_size]).sum().backward()
        optimizer.step()


def launched(num_gpus, batch_size):
    results = launch(alone, batch_size, num_processes=num_gpus)
    assert len(results) == num_gpus


def one_device(num_gpus):
    net = nn.Linear(4, 1)
    for _ in range(30):
        net(torch.randn(8, 4)).sum().backward()


@pytest.mark.soak
def test_devices_in_threads_are_seen(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    answer = explain(in_threads, num_gpus=2, batch_size=128)
    assert answer.run.in_threads and (answer.single.k, answer.run.k) == (1, 2)
    assert answer.single.rows == answer.run.rows == 128 and answer.run.ranks[0]["rows"] % 64 == 0
    assert answer.run.ranks[0]["gradient_bytes"] == 4 * sum(int(np.prod(s)) for s in SHAPES)
    shares = answer.run.shares()
    assert shares["computing"] > 0.3 and shares["exchanging"] > 0 and shares["loading"] > 0
    assert "2 devices in one process" in str(answer)
    html = answer._repr_mimebundle_()["text/html"]
    assert "2 devices in one process" in html and re.search("device 1: (loading|computing)", html)


@pytest.mark.needs("cores")
@pytest.mark.parametrize("train", sample(1, [launched, alone]))
def test_what_runs_in_processes_is_seen_with_its_line(train):
    answer = explain(train, num_gpus=2, batch_size=64)
    assert answer.cause.name == "data-parallel" and answer.run.k == 2 and not answer.run.in_threads
    assert ".sum().backward()" in code(answer.cause.where, answer.folder)


def test_launch_is_found_where_it_is_used():
    def calls(num_gpus):
        return launched(num_gpus, 8)

    assert uses_launch(launched, []) and uses_launch(calls, [])
    assert not uses_launch(alone, []) and not uses_launch(in_threads, [])


@pytest.mark.needs("cores")
def test_what_cannot_be_explained_is_said():
    with pytest.raises(WatchError, match="devices were not seen"):
        explain(one_device)
    with pytest.raises(WatchError, match="not 3"):
        explain(3)
    with pytest.raises(WatchError, match="devices=4096"):
        explain(one_device, num_gpus=4096)
