"""A process group of many devices in one process: what is exchanged arrives at once, as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from torch import distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from d2lmgpu.memory import need
from d2lmgpu.torch.memory.first_fsdp import first_fsdp_on


def begin(devices, init_process_group) -> None:
    """Make such a group with PyTorch's own ``init_process_group``."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    init_process_group("fake", store=FakeStore(), rank=0, world_size=devices)


def without_modes(init_device_mesh) -> Callable:
    """The same function where tensors are fake: a mesh looks at its ranks, which are in one."""

    def made(*args, **kwargs):
        with _disable_current_modes():
            return init_device_mesh(*args, **kwargs)

    return made


@contextmanager
def group(devices) -> Iterator[list]:
    """Within it this process is rank 0 of so many, by PyTorch's backend "fake".

    Gives a list of what the first FSDP has wrapped.
    """
    if devices == 1:
        yield []
        return
    free = dist.is_available() and not dist.is_initialized()
    need(free, "devices", devices, "1 where there is a process group already, or PyTorch has none")
    from torch.distributed.fsdp._fully_shard import _fsdp_init

    begin(devices, dist.init_process_group)
    mesh = without_modes(_fsdp_init.init_device_mesh)
    try:
        with (
            mock.patch.object(_fsdp_init, "init_device_mesh", mesh),
            first_fsdp_on("cpu") as wrapped,
        ):
            yield wrapped
    finally:
        dist.destroy_process_group()
