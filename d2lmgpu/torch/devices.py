"""Devices of PyTorch: which there are, how work runs on all of them, what they are given."""

from functools import partial
from weakref import WeakSet

import torch
from torch import nn

from d2lmgpu.backend.arguments import Rules
from d2lmgpu.backend.functions import device_functions
from d2lmgpu.machine import devices as _devices
from d2lmgpu.machine import threads as _parallel
from d2lmgpu.process import lanes

_warned = WeakSet()  # networks in DataParallel of which it was said that they use fewer devices
_threads = _parallel.DeviceThreads(lambda: torch.set_num_threads(1), lambda: num_gpus())


class _TorchRules(Rules):
    Array = torch.Tensor
    Device = torch.device
    NETWORK = "a Module with parameters"

    def memory(self, array):
        start, steps = array.data_ptr(), zip(array.shape, array.stride())
        last = sum((size - 1) * stride for size, stride in steps)
        return start, start + array.element_size() * (last + 1 if array.numel() else 0)

    def place(self, array):
        return array.device

    def values(self, array):
        return array.numpy() if array.device.type == "cpu" else None

    def recorded(self, array):
        return array.is_leaf and array.requires_grad and torch.is_grad_enabled()

    def exists(self, device):
        return device.type == "cpu" or (device.type == "cuda" and (device.index or 0) < num_gpus())

    def has_parameters(self, net):
        return isinstance(net, nn.Module) and any(True for _ in net.parameters())

    def on_one_device(self, net, data_iter, device=None):
        """Say of DataParallel, once for each network, that it uses fewer devices."""
        number, gpus = _devices.available(num_gpus())[1], num_gpus()
        one_of_many = number > 1 and not _devices.own_gpus(number, gpus)
        if isinstance(net, nn.DataParallel) and one_of_many and net not in _warned:
            _warned.add(net)
            used = f"{gpus} GPU{'s' * (gpus > 1)}" if gpus else "one device"
            print(
                f"nn.DataParallel divides a batch among GPUs alone: here {used} of {number} did "
                "its work, whatever its device_ids. All of them work with launch and "
                "DistributedDataParallel, or with parallel and a replica for each device."
            )

    def on_all_devices(self, net, data_iter):
        super().on_all_devices(net, data_iter)
        self.on_one_device(net, data_iter)


checked = _TorchRules().checked


def num_gpus() -> int:
    """Number of GPUs that PyTorch sees.

    Returns
    -------
    int
        0 without any.
    """
    return torch.cuda.device_count()


gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile = device_functions(
    checked, num_gpus, partial(torch.device, "cuda"), partial(torch.device, "cpu")
)


@checked
def parallel(fn, *per_device_args) -> list:
    """``[fn(*args) for each device]``, all devices at once.

    On GPUs a plain loop: kernels are asynchronous. On the CPU, and on both, threads, in which
    gradients and automatic casts are on or off as they are here.

    Parameters
    ----------
    fn : callable
        What each device does; what it raises is raised here.
    *per_device_args : list
        The arguments of ``fn``, in their order: each is a list with one entry a device.

    Returns
    -------
    list
        What ``fn`` returned, one entry a device. A GPU may still be at work: see ``synchronize``.

    Raises
    ------
    ArgumentError
        If there is no list, or if the lists are not of one length.
    DeviceError
        For several devices from inside of what runs on a CPU device: it has one thread.
    """
    if _devices.available(num_gpus())[0] == "gpu":
        return [fn(*args) for args in zip(*per_device_args, strict=True)]
    grad, cast = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu")

    def call(*args):  # PyTorch keeps these settings for each thread
        with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype, cast):
            return fn(*args)

    return lanes.parallel(_threads.run, call, *per_device_args)


def synchronize() -> None:
    """Wait until every device has done its work (on a CPU it has, once a call returns).

    A GPU on which this process holds no memory does nothing for it, and is left alone.
    """
    for i in range(num_gpus()):
        if torch.cuda.memory_reserved(i):
            torch.cuda.synchronize(i)
