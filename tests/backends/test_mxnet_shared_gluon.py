"""Gluon keeps one copy of a parameter on each device: a GPU that two replicas share is refused."""

import gpu_stand_in
import pytest
from mxnet import init
from mxnet.gluon import nn

from d2lmgpu.machine.devices import DeviceError


@pytest.mark.parametrize("choice, gpus", [("gpu:2", 1), ("gpu:3", 2), ("gpu:2,cpu:1", 1)])
def test_a_gpu_named_twice_would_train_one_replica(d2l, monkeypatch, choice, gpus):
    gpu_stand_in.put_in("mxnet", gpus, monkeypatch.setattr)
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    for net in (nn.Dense(2, in_units=3), nn.Dense(2), d2l.resnet18(10, width=2)):
        with pytest.raises(DeviceError, match=r"names one twice.*D2LMGPU_DEVICES=cpu"):
            net.initialize(init.Normal(0.1), d2l.try_all_gpus())
        with pytest.raises(DeviceError, match="names one twice"):
            net.initialize(ctx=d2l.try_all_gpus())


def test_devices_of_their_own_are_initialised_as_ever(d2l, monkeypatch):
    gpu_stand_in.put_in("mxnet", 2, monkeypatch.setattr)
    for choice in ("gpu:2", "gpu:1,cpu:2"):
        monkeypatch.setenv("D2LMGPU_DEVICES", choice)
        net = nn.Dense(2, in_units=3)
        net.initialize(ctx=d2l.try_all_gpus())
        assert net.weight.list_ctx() == d2l.try_all_gpus()
    for device in (None, d2l.cpu(1)):
        net = nn.Dense(2, in_units=3)
        net.initialize(ctx=device)
        assert net.weight.list_ctx() == [device or d2l.cpu(0)]
