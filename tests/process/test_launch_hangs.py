"""Workers of ``launch`` that wait for each other without end are ended, and told why."""

import inspect
import time

import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.process.hangs.calls import NAMES


def train(steps):
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    net = DistributedDataParallel(nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        opt.zero_grad()
        net(torch.randn(8, 4)).sum().backward()  # trains
        opt.step()


def barrier_on_one():
    import torch
    from torch import distributed as dist

    if dist.get_rank() == 0:
        dist.barrier()  # rank 0
    dist.all_reduce(torch.ones(3))  # rank 1


def other_shape():
    import torch
    from torch import distributed as dist

    dist.all_reduce(torch.ones(4 + 2 * dist.get_rank()))  # rank 0 # rank 1


def message_that_nobody_sends():
    import torch
    from torch import distributed as dist

    if dist.get_rank() == 1:
        dist.recv(torch.ones(2), src=0)  # rank 1
    dist.barrier()  # rank 0


def each_waits_until_its_message_is_taken():
    import torch
    from torch import distributed as dist

    sent = dist.isend(torch.ones(3), 1 - dist.get_rank())
    sent.wait()  # rank 0 # rank 1
    dist.recv(torch.ones(3), 1 - dist.get_rank())


def fewer_steps():
    from torch import distributed as dist

    train(3 + dist.get_rank())


HANGS = [
    barrier_on_one,
    other_shape,
    message_that_nobody_sends,
    fewer_steps,
    each_waits_until_its_message_is_taken,
]
KEPT = [barrier_on_one, each_waits_until_its_message_is_taken]


@pytest.mark.parametrize("function", sample(KEPT, HANGS))
def test_the_error_names_the_line_of_each_rank(traces, function):
    with pytest.raises(LaunchError) as caught:
        launch(function, num_processes=2)
    lines, first = inspect.getsourcelines(train if function is fewer_steps else function)
    ranks = [line.strip() for line in str(caught.value).splitlines() if "  rank " in line]
    for rank in (0, 1):
        mark = "# trains" if (function, rank) == (fewer_steps, 1) else f"# rank {rank}"
        for number, line in enumerate(lines, first):
            if mark in line:
                assert f"(test_launch_hangs.py:{number}" in ranks[rank]
    traces.assert_none()


def test_a_rank_that_sleeps_is_waited_for(traces):
    def late():
        from torch import distributed as dist

        if dist.get_rank() == 0:
            time.sleep(6)
        dist.barrier()
        return dist.get_rank()

    assert launch(late, num_processes=2) == [0, 1]
    traces.assert_none()


def test_every_function_of_pytorch_by_which_ranks_exchange_is_noted():
    def worker():
        import inspect

        from torch.distributed import distributed_c10d as c10d

        functions = {name: getattr(c10d, name) for name in c10d.__all__}
        return {
            name
            for name, function in functions.items()
            if inspect.isfunction(function) and "group" in inspect.signature(function).parameters
        }

    (functions,) = launch(worker, num_processes=1)
    exchange = {name for name in functions if not name.startswith(("get_", "new_", "destroy_"))}
    made_of_others = {"send_object_list", "recv_object_list"}
    assert exchange - made_of_others - {"shrink_group"} <= set(NAMES)
