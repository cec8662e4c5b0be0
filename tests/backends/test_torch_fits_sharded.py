"""FSDP for devices that are not here, against PyTorch's own account of a process that runs it."""

import pytest
import torch
from profiled import highest_total
from torch import nn

from d2lmgpu.torch.memory import fits
from d2lmgpu.torch.memory.group import group

WIDTH, LAYERS = 256, 6


def block():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def plain():
    return nn.Sequential(*[block() for _ in range(LAYERS)])


def sharded():
    from torch.distributed.fsdp import fully_shard

    net = plain()
    for layer in net:
        fully_shard(layer)
    return fully_shard(net)


def batch(n):
    return (torch.rand(n, WIDTH),)


def squares(net, X):
    return net(X).square().mean()


def adam(parameters):
    return torch.optim.Adam(parameters, foreach=True)


def measured(batch_size):
    """The highest total that PyTorch's profiler notes in two steps after the network is there."""
    net = sharded()
    trainer = adam(net.parameters())
    held = sum(p.to_local().nbytes for p in net.parameters())
    with torch.profiler.profile(profile_memory=True) as profiler:
        for _ in range(2):
            trainer.zero_grad()
            squares(net, *batch(batch_size)).backward()
            trainer.step()
    return highest_total(profiler) + held


@pytest.mark.parametrize("batch_size", [8, 2048])
def test_the_peak_of_a_device_is_that_of_a_process(batch_size):
    """By itself: between processes what is on its way stays, as long as gloo takes for it."""
    with group(2):
        peak = measured(batch_size)
    fit = fits(sharded, batch, squares, adam, batch_size, devices=2)
    assert fit.peak == pytest.approx(peak, rel=0.02), fit


def test_states_are_cut_by_the_number_of_devices():
    P = 4 * sum(p.numel() for p in plain().parameters())
    for devices in (2, 64):
        fit = fits(sharded, batch, squares, adam, 8, devices=devices)
        assert fit.parts["parameters"] == pytest.approx(P / devices, rel=0.02)
        assert fit.parts["optimizer state"] <= 2.1 * P / devices
        assert fit.parts["buckets"] == 0


def test_afterwards_there_is_no_group():
    fits(sharded, batch, squares, adam, 8, devices=4)
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match=r"^devices is 0: give"):
        fits(sharded, batch, squares, adam, 8, devices=0)
