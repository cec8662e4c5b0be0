"""Real processes, one a rank, with ``torch.distributed`` between them."""

from typing import NamedTuple

from d2lmgpu.course.exercises.registry import Wrong
from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.machine.devices import VARIABLE
from d2lmgpu.machine.environ import variable

COUNTED = ("all_reduce", "reduce", "broadcast", "send", "isend")


class Ranks(NamedTuple):
    """What each rank returned, what its arrays hold afterwards, and its messages and waits."""

    results: list
    arrays: list
    messages: list


def in_processes(function, arrays):
    """``function(*tensors)`` on ``len(arrays)`` ranks: ``arrays[r]`` are rank r's; a Ranks.

    Raises Wrong for an answer that raises, and with each rank's line for one that waits for ever.
    """
    try:
        with variable(VARIABLE, f"cpu:{len(arrays)}"):  # also where there are fewer, or GPUs
            ends = launch(_of_rank, function, arrays, num_processes=len(arrays))
    except LaunchError as error:
        first = str(error).partition("\n\n")[0]
        hangs = "wait for each other" in first
        raise Wrong("deadlock" if hangs else "raised", first) from None
    return Ranks(*(list(part) for part in zip(*ends)))


def _of_rank(function, arrays):
    import torch
    from torch import distributed as dist

    messages = 0

    def counted(real):
        def call(*args, **options):
            nonlocal messages
            messages += 1
            return real(*args, **options)

        return call

    for name in COUNTED:
        setattr(dist, name, counted(getattr(dist, name)))
    tensors = [torch.from_numpy(array) for array in arrays[dist.get_rank()]]
    result = function(*tensors)
    if isinstance(result, torch.Tensor):
        result = result.numpy()
    return result, [tensor.numpy() for tensor in tensors], messages
