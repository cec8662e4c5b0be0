"""Real processes, one a rank, with ``torch.distributed`` between them."""

from typing import NamedTuple

from d2lmgpu.course.exercises.registry import Wrong
from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.machine.devices import VARIABLE
from d2lmgpu.machine.environ import variable
from d2lmgpu.process.hangs.calls import NAMES, note_each_call

RECEIVES = ("recv", "irecv")
PUT_IN = ("input_list", "input_tensor_list", "scatter_list", "input_tensor", "input", "tensor")
_calls = []  # of this process, if it is a rank


class Call(NamedTuple):
    """A call of torch.distributed, a ``wait`` for one, or what a checker has noted of a rank.

    ``numbers`` is how many are in the tensors that are sent, ``ranks`` are those of the group.
    """

    name: str
    numbers: int = 0
    ranks: tuple = ()


class Ranks(NamedTuple):
    """What each rank returned, what its arrays hold afterwards, and its Calls in their order."""

    results: list
    arrays: list
    calls: list

    @property
    def sent(self) -> list[list]:
        """Of each rank the Calls of torch.distributed in which it sends something, or meets."""
        sends = set(NAMES) - set(RECEIVES)
        return [[call for call in calls if call.name in sends] for calls in self.calls]

    @property
    def messages(self) -> list[int]:
        """How many these are."""
        return [len(calls) for calls in self.sent]

    @property
    def most_numbers(self) -> int:
        """How many numbers are handed over in the call that has most of them."""
        return max((call.numbers for calls in self.sent for call in calls), default=0)


def in_processes(function, arrays) -> Ranks:
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


def note(name, numbers=0) -> None:
    """Put a mark among the calls of this process, which is a rank: a checker's, not an answer's."""
    _calls.append(Call(name, numbers))


def own_rank() -> int:
    """The rank of this process, which is one of ``in_processes``."""
    from torch import distributed as dist

    return dist.get_rank()


def _of_rank(function, arrays):
    import torch
    from torch import distributed as dist

    _note_calls(torch)
    tensors = [torch.from_numpy(array) for array in arrays[dist.get_rank()]]
    result = _without_tensors(function(*tensors))
    return result, [tensor.numpy() for tensor in tensors], _calls


def _without_tensors(value):
    """With arrays in place of tensors, also in lists: the checker has no PyTorch."""
    if isinstance(value, (list, tuple)):
        return [_without_tensors(entry) for entry in value]
    return value.numpy() if hasattr(value, "numpy") else value


def _note_calls(torch):
    """From now on note what this process calls of torch.distributed, and what it waits for."""
    dist = torch.distributed

    def note_call(name, arguments):
        group = arguments.get("group")
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            return
        put_in = next((arguments[role] for role in PUT_IN if arguments.get(role) is not None), [])
        tensors = put_in if isinstance(put_in, (list, tuple)) else [put_in]
        numbers = sum(tensor.numel() for tensor in tensors if hasattr(tensor, "numel"))
        ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        _calls.append(Call(name, numbers, tuple(ranks)))

    note_each_call(torch, note_call)
    really_wait = dist.Work.wait

    def wait(*args, **options):
        note("wait")
        return really_wait(*args, **options)

    dist.Work.wait = wait
