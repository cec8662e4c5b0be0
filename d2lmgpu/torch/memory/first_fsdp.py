"""PyTorch's first FSDP, FullyShardedDataParallel, without the GPU whose streams it asks for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    _init_utils,
    fully_sharded_data_parallel,
)

from d2lmgpu.machine.no_gpu import Nothing


class Handle(Nothing):
    """In place of ``torch.cuda``; its ``device`` is where the parameters are."""

    Event = Stream = stream = current_stream = default_stream = Nothing

    def __init__(self, device):
        self.device = torch.device(device)

    def is_available(self) -> bool:
        """Whether there is such a device: there is."""
        return True

    def current_device(self) -> torch.device:
        """Where the parameters are."""
        return self.device


@contextmanager
def first_fsdp_on(device) -> Iterator[list]:
    """Within it the first FSDP takes ``device`` for an accelerator; gives what it has wrapped."""
    wrapped = []

    def init(state, *_):
        state._device_handle = Handle(device)
        wrapped.append(state)
        return state

    def by_id(device_id, *_):
        return device_id if device_id is None else torch.device(device)

    with ExitStack() as stack:
        for owner, name, function in (
            (fully_sharded_data_parallel, "_init_device_handle", init),
            (_init_utils, "_get_device_from_device_id", by_id),
            (_init_utils, "_move_module_to_device", move),
        ):
            stack.enter_context(mock.patch.object(owner, name, function))
        yield wrapped


def move(module, _ignored_params, _ignored_buffers, device) -> None:
    """To ``device``, as a network is moved; PyTorch gives each parameter other data, in place."""
    if device is not None:
        module.to(device)


def held_late(wrapped) -> int:
    """Bytes that what the first FSDP has wrapped may hold for longer than it needs them.

    It marks what it has gathered, and the gradients that it sends, by ``Tensor.record_stream``: the
    allocator has them back when the GPU is done, by how much the host runs ahead of it. At most it
    is all of both. (PyTorch's documentation of ``fully_shard``, which does without.)
    """
    handles = [state._handle for state in wrapped if state._handle]
    sizes = (h.flat_param._unpadded_unsharded_size.numel() * h.flat_param.itemsize for h in handles)
    return 2 * sum(sizes)


def is_sharded(net) -> bool:
    """Whether the first FSDP has cut the parameters of ``net``."""
    return any(isinstance(module, FullyShardedDataParallel) for module in net.modules())
