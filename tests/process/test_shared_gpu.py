"""Ranks on one GPU, by a stand-in: they meet over gloo, and train as one device does."""

import os
import sys

import pytest
from soaking import sample
from test_ddp_parity import (
    CHAPTER,
    LR,
    check_ranks,
    global_batches,
    networks,
    with_ddp,
)

from d2lmgpu.course import chapters
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.runner import Runner
from d2lmgpu.launch import LaunchError, launch


def where():
    """What a worker was given: its backend, the GPU that it was set to, its device."""
    import gpu_stand_in
    import torch
    from torch import distributed as dist

    from d2lmgpu import torch as d2l

    total = torch.ones(3, device=d2l.try_gpu(dist.get_rank()))
    dist.all_reduce(total)
    return dist.get_backend(), gpu_stand_in.was_set_to, total.tolist()


@pytest.mark.parametrize(
    "choice, seen, number, set_to",
    sample(
        1,
        [
            ("cpu:1,gpu:2", 1, 3, [None, 0, 0]),
            ("gpu:3", 2, 3, [0, 1, 0]),
            ("cpu:2", 1, 2, [None] * 2),
        ],
    ),
)
def test_ranks_that_share_a_gpu_meet_over_gloo(gpus, traces, choice, seen, number, set_to):
    gpus(seen, choice)
    results = launch(where, num_processes=number)
    assert results == [("gloo", gpu, [float(number)] * 3) for gpu in set_to]
    traces.assert_none(seconds=5)


ASKED = """
from torch import distributed
def ask(backend, device_id, **rest):
    raise RuntimeError(f"asked for {backend} on {device_id}")
distributed.init_process_group = ask
"""


def test_ranks_with_a_gpu_each_ask_for_nccl(gpus):
    """Which is not in this build of PyTorch: so only what it is asked for can be seen."""
    gpus(2, "gpu:2", ASKED)
    with pytest.raises(LaunchError, match=r"Worker (\d) of 2 raised .*asked for nccl on cuda:\1"):
        launch(where, num_processes=2)
    gpus(2, "gpu:3", ASKED)
    with pytest.raises(LaunchError, match="asked for gloo on None"):
        launch(where, num_processes=3)


OVER_GLOO = """
from torch import distributed
meet = distributed.init_process_group
def over_gloo(backend, device_id, **rest):
    meet("gloo", **rest)
distributed.init_process_group = over_gloo
"""


@pytest.mark.parametrize("ends", sample(1, ["and joins anew", "itself", "not"]))
def test_a_function_may_leave_the_group_that_launch_would_leave(gpus, traces, ends):
    def worker(ends):
        from torch import distributed as dist

        if ends != "not":
            dist.destroy_process_group()
        if ends == "and joins anew":
            dist.init_process_group("gloo", None, store=dist.HashStore(), rank=0, world_size=1)
        return "done"

    gpus(2, "gpu:2", OVER_GLOO)
    assert launch(worker, ends, num_processes=2) == ["done"] * 2
    traces.assert_none(seconds=5)


def test_the_lab_goes_past_the_one_gpu_and_calls_it_simulated(gpus, monkeypatch, tmp_path):
    def train(num_gpus, batch_size, lr):
        from types import SimpleNamespace

        from d2lmgpu import torch as d2l

        on_gpus = [str(device) for device in d2l.devices(num_gpus)] == ["cpu"] * num_gpus
        return SimpleNamespace(num_samples=8, accuracies=[on_gpus + 0.0], seconds=[1.0])

    gpus(1, "auto")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    events, ends = [], []
    runner = Runner(events.append, ends.append)
    for number in (1, 2):
        runner.start(train, ("torch",), num_gpus=number, batch_size=8, lr=0.1)
        assert runner.wait(120)
    POOL.end_spare()
    ready = [event for event in events if event["event"] == "ready"]
    assert [(event["kind"], event["devices"]) for event in ready] == [("gpu", 1)] * len(ready)
    started = [event["sharing"] for event in events if event["event"] == "started"]
    assert started == ["one device", "simulated"]
    # on the stand-in, which is no core: those are cpu:0, cpu:1, …
    assert [end.result["accuracies"] for end in ends] == [[1.0], [1.0]]


def test_a_rank_too_many_is_refused_with_the_way_to_share(gpus):
    gpus(1, "auto")
    with pytest.raises(LaunchError, match="D2LMGPU_DEVICES=gpu:2"):
        launch(where, num_processes=2)


@pytest.mark.parametrize("choice, k", sample(1, [("gpu:1,cpu:2", 3), ("gpu:2", 2), ("gpu:4", 4)]))
def test_three_updates_of_ddp_are_those_of_one_device(gpus, choice, k):
    gpus(1, choice)
    train_shard = chapters.load(CHAPTER)["train_shard"]
    nets, batches = networks(), list(global_batches(k))
    by_rank = launch(with_ddp, train_shard, nets, batches, LR, num_processes=k)
    check_ranks(by_rank, nets, k, batches)
