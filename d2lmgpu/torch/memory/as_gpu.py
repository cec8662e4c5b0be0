"""A GPU that is not there: what a script puts on "cuda" becomes a fake tensor, without memory.

Tensors of the CPU stay what they are, with their numbers. Those of the GPU are fake, on a device
that no real tensor is on: so each operation stays where its inputs are, and two devices in one are
the error that they are on a GPU. What comes back to the CPU is zeros.
"""

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from d2lmgpu.torch.memory.follow import buckets

GPU = torch.device("cpu", 1)
FROM_NUMBERS = {torch.tensor, torch.as_tensor, torch.asarray}


def is_there(tensor) -> bool:
    """Whether ``tensor`` is on that GPU."""
    return isinstance(tensor, FakeTensor) and tensor.fake_device == GPU


def is_gpu(device) -> bool:
    """Whether ``device`` is that GPU: by its name, as a torch.device, or by its number."""
    if isinstance(device, torch.device):
        return device.type == "cuda" or device == GPU
    return type(device) is int or (isinstance(device, str) and device.startswith("cuda"))


class AsGPU(TorchFunctionMode):
    """Functions of PyTorch with that GPU as a device; what it holds is told to ``storages``."""

    def __init__(self, storages):
        super().__init__()
        self.fake, self.storages = FakeTensorMode(allow_non_fake_inputs=True), storages
        self.wrapped = []  # by the first FSDP

    def put(self, tensor) -> torch.Tensor:
        """A copy of ``tensor`` on the GPU; itself if it is there."""
        if is_there(tensor):
            return tensor
        with self.fake:
            copy = self.fake.from_tensor(tensor.detach()).to(GPU)
        self.storages.name("batch", [copy])  # unless it turns out to be a parameter
        return copy

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is Tensor.pin_memory:
            return args[0]
        if func is Tensor.cuda:
            return self.put(args[0])
        if func is Tensor.cpu or func is Tensor.tolist:
            return func(back(args[0]))
        if func is Tensor.to:
            return self._to(*args, **kwargs)
        if not is_gpu(kwargs.get("device")):
            return func(*args, **kwargs)
        kwargs = kwargs | {"device": GPU}
        if func in FROM_NUMBERS:
            made = func(*args, **kwargs | {"device": "cpu"})
            return self.put(made).requires_grad_(made.requires_grad)
        with self.fake:
            return func(*args, **kwargs)

    def _to(self, tensor, *args, **kwargs):
        """``tensor.to(device, dtype)``, ``.to(dtype)`` or ``.to(another tensor)``."""
        if args and isinstance(args[0], Tensor):
            args = args[0].device, args[0].dtype, *args[1:]
        if args and not isinstance(args[0], torch.dtype):
            kwargs, args = kwargs | {"device": args[0]}, args[1:]
        device = kwargs.pop("device", None)
        if device is not None:
            tensor = self.put(tensor) if is_gpu(device) else back(tensor)
        dtype = kwargs.get("dtype", args[0] if args else None)
        return tensor if dtype is None else tensor.to(dtype)


def back(tensor) -> torch.Tensor:
    """What comes to the CPU: no numbers are known."""
    if not isinstance(tensor, FakeTensor):
        return tensor
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def replica(mode, devices) -> type[nn.Module]:
    """What is in place of DistributedDataParallel: the network on the first of so many devices."""

    class Replica(nn.Module):
        def __init__(self, module, *_, **__):
            super().__init__()
            self.module, self.buckets = module, []
            trained = [p for p in module.parameters() if p.requires_grad]
            if devices > 1 and all(map(is_there, trained)):
                with mode.fake, torch.device(GPU):
                    self.buckets = buckets(trained)
            mode.storages.name("buckets", self.buckets)

        def forward(self, *args, **kwargs):
            if any(map(is_there, self.parameters())):
                args, kwargs = tree_map_only(Tensor, mode.put, (args, kwargs))
            return self.module(*args, **kwargs)

    return Replica
