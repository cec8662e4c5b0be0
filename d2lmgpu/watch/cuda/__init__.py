"""A script that was written for GPUs, on CPU cores: while it is watched, `cuda` is the CPU.

A build of PyTorch for CPUs has no such device, and refuses it. So each name by which scripts ask
for one is replaced, once PyTorch is imported: where tensors are made or moved (``tensors``), what
``torch.cuda`` and ``torch.accelerator`` say (``answers``), what joins the processes and goes over
their gradients (``processes``), and types of numbers (``autocast``). Lightning, which counts GPUs
by itself, is told (``watch.lightning``).

It is the same training, but for what depends on two places of a tensor: here ``x.cuda()`` is ``x``
and not a copy, and a tensor that was not moved is no error. Tensors say that they are on the CPU.
"""

from d2lmgpu.watch.cuda import answers, autocast, processes, tensors
from d2lmgpu.watch.cuda.device import Device
from d2lmgpu.watch.lightning import follow_the_processes


def on_cpu(watch, devices) -> Device:
    """From now on the GPUs of this process, ``devices`` in number, are CPU cores; its ``Device``.

    The report says as ``cuda`` on which line the script first asked for one; None if it did not.
    """
    device = Device(watch)
    for part in (tensors, answers, autocast, processes):
        part.replace(watch.torch, device, devices)
    follow_the_processes(watch, device)
    watch.at_end(lambda: {"cuda": device.line})
    return device
