"""What only PyTorch has: DataParallel, and GPUs that this process does not use."""

import subprocess
import sys

import gpu_stand_in
import pytest
import torch
from torch import nn

ONE_BATCH = [(torch.zeros(4, 1, 28, 28), torch.zeros(4, dtype=torch.int64))]


@pytest.fixture
def wrapped():
    """A network in DataParallel."""
    return nn.DataParallel(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))


@pytest.mark.parametrize("evaluate", ["evaluate_accuracy_gpu", "evaluate_accuracy_gpus"])
def test_data_parallel_on_cpu_devices_says_of_each_network_that_one_device_works(
    d2l, monkeypatch, capsys, wrapped, evaluate
):
    alone = d2l.evaluate_accuracy_gpu(wrapped.module, ONE_BATCH)
    assert capsys.readouterr().out == ""
    for choice in ("cpu:3", "cpu:3", "cpu:1"):
        monkeypatch.setenv("D2LMGPU_DEVICES", choice)
        assert getattr(d2l, evaluate)(wrapped, ONE_BATCH) == alone
    (line,) = capsys.readouterr().out.splitlines()
    assert "here one device of 3 did its work, whatever its device_ids" in line
    assert "launch and DistributedDataParallel" in line and "parallel and a replica" in line
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:2")
    another = nn.DataParallel(wrapped.module, device_ids=d2l.devices(2))
    getattr(d2l, evaluate)(another, ONE_BATCH)
    assert capsys.readouterr().out.count("one device of 2 did its work") == 1


def test_only_devices_in_use_are_waited_for(d2l, monkeypatch):
    """A rank uses one GPU; to touch the others would take memory on each of them."""
    waited = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda i: [0, 2**20, 0][i])
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    d2l.synchronize()
    assert waited == [1]


@pytest.mark.parametrize("choice", ["gpu:2", "gpu:1,cpu:1"])
def test_data_parallel_on_a_shared_gpu_is_not_told_as_two(
    d2l, monkeypatch, capsys, wrapped, choice
):
    """It takes the GPUs that PyTorch sees, which are fewer than the devices."""
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    gpu_stand_in.put_in("torch", 1, monkeypatch.setattr)
    assert 0 <= d2l.evaluate_accuracy_gpu(wrapped, ONE_BATCH) <= 1
    assert "here 1 GPU of 2 did its work" in capsys.readouterr().out
    gpu_stand_in.put_in("torch", 2, monkeypatch.setattr)
    monkeypatch.setenv("D2LMGPU_DEVICES", "gpu:2")
    assert 0 <= d2l.evaluate_accuracy_gpu(wrapped, ONE_BATCH) <= 1
    assert capsys.readouterr().out == ""


def test_pytorch_s_own_devices_are_those_of_the_list(d2l, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("D2LMGPU_DEVICES", "gpu:3,cpu:1")
    assert [str(device) for device in d2l.try_all_gpus()] == ["cuda:0", "cuda:1", "cuda:0", "cpu:0"]
    assert d2l.devices(2) == d2l.try_all_gpus()[:2] and d2l.try_gpu(2) == torch.device("cuda", 0)


@pytest.mark.parametrize(
    "version, works",
    [
        ("2.3.1", False),
        ("1.13.1+cu117", False),
        ("2.4.0", True),
        ("2.10.0a0+git1", True),
    ],
)
def test_an_older_pytorch_is_refused_with_what_to_do(version, works):
    code = f"import torch; torch.__version__ = {version!r}; from d2lmgpu import torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode == 0) == works
    if not works:
        line = done.stderr.splitlines()[-1]
        assert line.startswith("ImportError") and version in line
        assert 'pip install "torch>=2.4"' in line
