"""Worker processes that fail: the error says which one and why, and nothing stays behind."""

import os
import re
import signal
import threading
import time

import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch


def test_error_names_the_rank_that_raised_first_and_shows_its_traceback(traces):
    def look_up_shard(rank):
        raise ValueError(f"no data for rank {rank}")

    def worker():
        import torch
        from torch import distributed as dist

        if dist.get_rank() == 1:
            print("reading the data")
            look_up_shard(1)
        dist.all_reduce(torch.ones(2))  # fails, too, when its peer has gone

    with pytest.raises(LaunchError) as caught:
        launch(worker, num_processes=2)
    message = str(caught.value)
    assert message.startswith("Worker 1 of 2 raised ValueError: no data for rank 1")
    assert "in look_up_shard" in message and 'raise ValueError(f"no data' in message
    assert message.endswith("The end of its output:\nreading the data")
    traces.assert_none(seconds=0.1)


def test_killed_worker_is_told_in_words(traces):
    def worker():

        import torch
        from torch import distributed as dist

        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(2))

    with pytest.raises(LaunchError, match=r"^Worker 1 of 2 was killed by SIGKILL"):
        launch(worker, num_processes=2)
    traces.assert_none(seconds=0.1)


@pytest.mark.parametrize("exit_code", sample(1, [0, 3]))
def test_worker_that_exits_without_a_result_is_an_error(traces, exit_code):
    def worker():

        from torch import distributed as dist

        if dist.get_rank() == 1:
            os._exit(exit_code)
        elif exit_code:
            time.sleep(1000)  # the supervisor ends it, which is not the cause

    with pytest.raises(LaunchError, match=rf"^Worker 1 of 2 ended .*exit code {exit_code}\)"):
        launch(worker, num_processes=2)
    traces.assert_none(seconds=0.1)


def test_a_worker_that_somebody_ended_is_told_though_its_peer_ran_on(traces):
    def worker():
        from torch import distributed as dist

        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1000)

    with pytest.raises(LaunchError, match=r"^Worker 1 of 2 was killed by SIGTERM"):
        launch(worker, num_processes=2)
    traces.assert_none(seconds=0.1)


def returns_a_lock():
    return threading.Lock()


def returns_a_generator():
    return (x for x in range(3))


def returns_a_ddp_net():
    from torch import distributed as dist
    from torch import nn

    if dist.get_rank() == 1:
        return nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    nn.parallel.DistributedDataParallel(nn.Linear(2, 1))


@pytest.mark.parametrize(
    "fn, ranks, kind",
    sample(
        1,
        [
            (returns_a_lock, "01", "lock"),
            (returns_a_generator, "01", "generator"),
            (returns_a_ddp_net, "1", "DistributedDataParallel"),
        ],
    ),
)
def test_a_return_value_that_cannot_be_sent_back_is_named(traces, fn, ranks, kind):
    with pytest.raises(LaunchError) as caught:
        launch(fn, num_processes=2)
    first = str(caught.value).splitlines()[0]
    assert re.match(rf"Worker [{ranks}] .*returned a {kind}", first)
    traces.assert_none(seconds=0.1)


def test_what_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"^The argument 2 is of type lock .*cannot pickle"):
        launch(lambda a, b: None, 1, lock, num_processes=1)

    def holds_lock():
        return lock

    with pytest.raises(TypeError, match=r"^'lock', which holds_lock uses, is of type lock"):
        launch(holds_lock, num_processes=1)
