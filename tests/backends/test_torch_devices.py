"""What only PyTorch has: DataParallel, and GPUs that this process does not use."""

import pytest
import torch
from torch import nn

ONE_BATCH = [(torch.zeros(4, 1, 28, 28), torch.zeros(4, dtype=torch.int64))]


def test_data_parallel_on_cpu_devices_is_refused(d2l, monkeypatch):
    """It would run on one device, and say two."""
    net = nn.DataParallel(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))
    for evaluate in (d2l.evaluate_accuracy_gpu, d2l.evaluate_accuracy_gpus):
        with pytest.raises(ValueError, match="DistributedDataParallel"):
            evaluate(net, ONE_BATCH)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:1")
    assert 0 <= d2l.evaluate_accuracy_gpu(net, ONE_BATCH) <= 1


def test_only_devices_in_use_are_waited_for(d2l, monkeypatch):
    """A rank uses one GPU; to touch the others would take memory on each of them."""
    waited = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda i: [0, 2**20, 0][i])
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    d2l.synchronize()
    assert waited == [1]
