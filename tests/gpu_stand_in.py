"""A stand-in for GPUs, where there are none: what a framework is asked about them, and no more.

It is asked how many it sees, and for number i: that is a CPU device here. What then computes,
copies and adds is the framework itself. In PyTorch every GPU is plain ``cpu``, so that ``to`` gives
a tensor itself back, as it does on a GPU where the tensor is already; in MXNet they are CPU devices
of their own, from 100 up.
"""

from importlib import import_module

from d2lmgpu.backend.functions import device_functions

NAMES = ["gpu", "cpu", "try_gpu", "try_all_gpus", "devices", "sharing", "profile"]
FIRST = 100  # of MXNet's CPU devices that stand for GPUs
was_set_to = None  # the number of the GPU that this process was set to


def set_to(i):
    global was_set_to
    was_set_to = i


def put_in(framework, gpus, setattr):
    """Let ``framework`` see so many GPUs, by ``setattr(object, name, value)``."""
    d2l = import_module(f"d2lmgpu.{framework}")
    room = import_module(f"d2lmgpu.{framework}.devices")
    if framework == "torch":
        import torch

        setattr(torch.cuda, "device_count", lambda: gpus)
        setattr(torch.cuda, "memory_reserved", lambda i: 0)
        setattr(torch.cuda, "set_device", set_to)

        def gpu(i):
            return torch.device("cpu")
    else:
        from mxnet import npx

        setattr(npx, "num_gpus", lambda: gpus)

        def gpu(i):
            return npx.cpu(FIRST + i)

    functions = device_functions(room.checked, d2l.num_gpus, gpu, d2l.cpu)
    for name, function in zip(NAMES, functions, strict=True):
        setattr(room, name, function)
        setattr(d2l, name, function)
