"""FSDP for devices that are not here, against PyTorch's own account of a process that runs it."""

import pytest
import torch
from cpu_profile import highest_total
from torch import nn

from d2lmgpu.torch.memory import fits
from d2lmgpu.torch.memory.group import group

WIDTH, LAYERS = 256, 6


def block():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def plain():
    return nn.Sequential(*[block() for _ in range(LAYERS)])


def sharded(again=True):
    """Each block is gathered ``again`` for the backward pass; or once, which is ZeRO-2."""
    from torch.distributed.fsdp import fully_shard

    net = plain()
    for layer in net:
        fully_shard(layer, reshard_after_forward=again)
    return fully_shard(net, reshard_after_forward=again)


def gathered_once():
    return sharded(again=False)


def sharded_at_first(again=True):
    """The same by the first FSDP."""
    from torch.distributed import fsdp

    full, once = fsdp.ShardingStrategy.FULL_SHARD, fsdp.ShardingStrategy.SHARD_GRAD_OP
    blocks = fsdp.wrap.ModuleWrapPolicy({nn.Sequential})
    return fsdp.FullyShardedDataParallel(
        plain(), auto_wrap_policy=blocks, sharding_strategy=full if again else once
    )


def gathered_once_at_first():
    return sharded_at_first(again=False)


def batch(n):
    return (torch.rand(n, WIDTH),)


def squares(net, X):
    return net(X).square().mean()


def adam(parameters):
    return torch.optim.Adam(parameters, foreach=True)


def shared_adam(parameters):
    """ZeRO-1."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(parameters, torch.optim.Adam, foreach=True)


def measured(make, optimizer, batch_size):
    """The highest total that PyTorch's profiler notes in two steps after the network is there."""
    net = make()
    trainer = optimizer(net.parameters())
    held = sum(getattr(p, "_local_tensor", p).nbytes for p in net.parameters())
    with torch.profiler.profile(profile_memory=True) as profiler:
        for _ in range(2):
            trainer.zero_grad()
            squares(net, *batch(batch_size)).backward()
            trainer.step()
    return highest_total(profiler) + held


CASES = [
    (sharded, adam, 8),
    (sharded, adam, 2048),
    (gathered_once, adam, 8),
    (gathered_once, adam, 2048),
    (sharded_at_first, adam, 8),
    (sharded_at_first, adam, 2048),
    (gathered_once_at_first, adam, 8),
    (gathered_once_at_first, adam, 2048),
    (plain, shared_adam, 8),
    (plain, shared_adam, 2048),
]


@pytest.mark.parametrize("make, optimizer, batch_size", CASES)
def test_the_peak_of_a_device_is_that_of_a_process(make, optimizer, batch_size):
    """By itself: between processes what is on its way stays, as long as gloo takes for it.

    Nor are there DDP's buckets in the process.
    """
    with group(2):
        peak = measured(make, optimizer, batch_size)
    fit = fits(make, batch, squares, optimizer, batch_size, devices=2)
    assert fit.peak - fit.parts["buckets"] == pytest.approx(peak, rel=0.02), fit


def test_the_first_fsdp_may_hold_all_that_it_gathers_and_sends_for_longer():
    P = 4 * sum(p.numel() for p in plain().parameters())
    first, second = (
        fits(make, batch, squares, adam, 8, devices=4) for make in (sharded_at_first, sharded)
    )
    assert first.late == 2 * P and second.late == 0
    assert first.on("T4").low == pytest.approx(second.on("T4").low, rel=0.05)
    assert first.on("T4").high > second.on("T4").high + 2 * P
    assert f"up to {first.late / 1e6:,.0f} MB more" in str(first) and "more" not in str(second)


def test_a_stage_of_zero_takes_less_than_the_one_before():
    takes = [
        fits(make, batch, squares, optimizer, 8, devices=4).peak
        for make, optimizer in (
            (plain, adam),
            (plain, shared_adam),
            (gathered_once, adam),
            (sharded, adam),
        )
    ]
    assert takes == sorted(takes, reverse=True) and len({*takes}) == 4


def test_states_of_zero_1_are_those_of_the_parameters_of_the_first_device():
    """The largest first, each to the device that has least: 6 x 2 matrices go evenly to 4."""
    P = 4 * sum(p.numel() for p in plain().parameters())
    fit = fits(plain, batch, squares, shared_adam, 8, devices=4)
    assert fit.parts["parameters"] == fit.parts["gradients"] == fit.parts["buckets"] == P
    assert fit.parts["optimizer state"] == pytest.approx(2 * P / 4, rel=0.01)


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
