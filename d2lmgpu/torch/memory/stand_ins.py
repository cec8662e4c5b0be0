"""What PyTorch is to say and do where its GPUs are not there (``as_gpu``)."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

import torch
from torch import distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.distributed import device_mesh
from torch.distributed.fsdp._fully_shard import _fsdp_init
from torch.utils.data import DataLoader

from d2lmgpu.machine.no_gpu import NOTHING, ZERO, Nothing
from d2lmgpu.torch.memory.as_gpu import GPU, AsGPU, replica
from d2lmgpu.torch.memory.first_fsdp import first_fsdp_on
from d2lmgpu.torch.memory.group import begin, without_modes
from d2lmgpu.torch.memory.on_gpu import also_in_backward

FULLY_SHARD = importlib.import_module("torch.distributed.fsdp._fully_shard._fully_shard")
CHOOSES = ["set_device", "set_device_index", "set_device_idx"]  # there is one
FIRST = ["current_device", "current_device_index", "current_device_idx"]


def answers(devices, card, total) -> dict:
    """{function of torch.cuda and torch.accelerator: what it returns}."""
    generation = {"major": 8, "minor": 0, "multi_processor_count": 80}
    others = {
        "current_accelerator": torch.device("cuda"),
        "current_stream": Nothing(),
        "default_stream": Nothing(),
        "device_count": devices,
        "get_device_capability": (8, 0),
        "get_device_name": card,
        "get_device_properties": SimpleNamespace(name=card, total_memory=total, **generation),
        "is_available": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "is_initialized": True,
        "mem_get_info": (total, total),
        "memory_summary": "",
    }
    return dict.fromkeys(NOTHING + CHOOSES) | dict.fromkeys(ZERO + FIRST, 0) | others


def keeps_shared(storages) -> Callable:
    """``Module._apply`` for fake tensors: ``storages`` learns which are the parameters now."""

    def apply(self, fn, *args, real=nn.Module._apply, **kwargs):
        """Each parameter becomes another object, as a fake one is; what was shared stays so."""
        places = {}
        for module in self.modules():
            for name, parameter in module._parameters.items():
                places.setdefault(id(parameter), []).append((module, name))
        done = real(self, fn, *args, **kwargs)
        for (first, name), *others in places.values():
            for module, its in others:
                module._parameters[its] = first._parameters[name]
        storages.rename("parameters", [*self.parameters(), *self.buffers()])
        return done

    return apply


@contextmanager
def stand_ins(storages, devices, card, total) -> Iterator[AsGPU]:
    """Within it there are so many GPUs, each a ``card`` with ``total`` bytes; this is the first.

    ``storages``: a ``FollowStorages`` of the tensors that are there, which is told what for. Gives
    the mode that puts them there.
    """
    mode = AsGPU(storages)
    data_parallel = replica(mode, devices)

    def alone(*_, real=dist.init_process_group, **__):
        begin(devices, real)

    with ExitStack() as stack:
        for name, answer in answers(devices, card, total).items():
            for owner in (torch.cuda, torch.accelerator):
                if hasattr(owner, name):
                    function = mock.Mock(return_value=answer)
                    stack.enter_context(mock.patch.object(owner, name, function))
        for name in ("Event", "Stream", "stream", "device"):
            stack.enter_context(mock.patch.object(torch.cuda, name, Nothing))
        for owner, name, function in (
            (nn.Module, "_apply", keeps_shared(storages)),
            (nn.Module, "to", to),
            (torch.utils, "swap_tensors", swap_tensors),
            (FakeTensor, "__format__", shown),
            (torch, "compile", uncompiled),
            (torch, "load", load),
            (DataLoader, "__init__", unpinned),
            (autocast, "__init__", autocast_here),
            (GradScaler, "_maybe_opt_step", updated),
            (nn, "DataParallel", data_parallel),
            (nn.parallel, "DataParallel", data_parallel),
            (nn.parallel, "DistributedDataParallel", data_parallel),
            (nn.parallel.distributed, "DistributedDataParallel", data_parallel),
            (dist, "init_process_group", alone),
            (dist.distributed_c10d, "init_process_group", alone),
            (device_mesh, "init_process_group", alone),
            (device_mesh, "init_device_mesh", mesh),
            (_fsdp_init, "init_device_mesh", mesh),
            (FULLY_SHARD, "_get_device_from_mesh", lambda mesh: GPU),
        ):
            stack.enter_context(mock.patch.object(owner, name, function))
        mode.wrapped = stack.enter_context(first_fsdp_on(GPU))
        stack.enter_context(also_in_backward(mode))
        yield mode


def to(self, *args, real=nn.Module.to, **kwargs) -> torch.Tensor:
    """A number is a GPU's."""
    if args and type(args[0]) is int:
        args = torch.device("cuda", args[0]), *args[1:]
    return real(self, *args, **kwargs)


def swap_tensors(first, second, real=torch.utils.swap_tensors) -> None:
    """A parameter that is fake is changed in its place."""
    if not isinstance(first, FakeTensor):
        return real(first, second)
    first.data, first.fake_device = second.data, second.fake_device


def load(file, map_location=None, *args, real=torch.load, **kwargs) -> object:
    """A checkpoint is read to the CPU, whatever it was saved from."""
    return real(file, "cpu", *args, **kwargs)


def shown(self, spec) -> str:
    """As a tensor with a number is."""
    return format(self.item(), spec) if not self.dim() else object.__format__(self, spec)


def uncompiled(model=None, *_, **__) -> Callable:
    """torch.compile, of which the memory is not known."""
    return model if model is not None else lambda function: function


def unpinned(self, *args, real=DataLoader.__init__, **kwargs) -> None:
    """Without a thread that pins, which would ask the GPU."""
    real(self, *args, **kwargs)
    self.pin_memory = False


def autocast_here(self, device_type, dtype=None, *args, real=autocast.__init__, **kwargs) -> None:
    """Autocast of what is on that GPU; ``on_gpu`` makes it that of GPUs."""
    if device_type == "cuda":
        device_type, dtype = "cpu", dtype or torch.float16
    real(self, device_type, dtype, *args, **kwargs)


def updated(self, optimizer, state, *args, **kwargs) -> object:
    """A scaler would look whether a gradient is infinite."""
    return optimizer.step(*args, **kwargs)


def mesh(kind, *args, real=device_mesh.init_device_mesh, **kwargs) -> object:
    """A mesh of GPUs is one of CPUs, which there are."""
    return without_modes(real)("cpu", *args, **kwargs)
