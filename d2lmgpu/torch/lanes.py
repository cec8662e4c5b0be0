"""What a lab is told of the devices during a run: on the CPU what they do, on GPUs their memory."""

import torch

from d2lmgpu.process.lanes import LISTENER, Listener, Steps
from d2lmgpu.torch.devices import num_gpus


def listen(kind) -> Listener:
    """Have the lab told of this process's devices, which are of that kind ('gpu' or 'cpu').

    On a GPU work is only queued by the calls that are timed, so no times are told there.
    """
    return LISTENER.listen(Steps(memory=memory if kind == "gpu" else None, timed=kind == "cpu"))


def memory() -> list[int] | None:
    """The most bytes that tensors of this process took, of each GPU; None if they took none."""
    most = [torch.cuda.max_memory_allocated(i) for i in range(num_gpus())]
    return most if any(most) else None
