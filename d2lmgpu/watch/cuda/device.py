"""Which device is meant, and what is there in place of it."""

import re
from functools import wraps

GPU = re.compile(r"cuda(:\d+)?")


class Device:
    """Called with a device as scripts write it, it gives the one that there is.

    ``line``: "file:line" of the script that asked for a GPU first, None as long as none did.
    ``index``: the present GPU's number.
    """

    def __init__(self, watch):
        self.torch, self.where, self.line, self.index = watch.torch, watch.where, None, 0

    def is_gpu(self, device) -> bool:
        """Whether it is a GPU: by its name, as a torch.device, or by its number."""
        if isinstance(device, self.torch.device):
            return device.type == "cuda"
        if isinstance(device, str):
            return GPU.fullmatch(device) is not None
        return type(device) is int

    def __call__(self, device):
        if not self.is_gpu(device):
            return device
        self.line = self.line or self.where()
        return "cpu"


def replaced(owner, name, made):
    """In place of ``owner.name``, if there is such a name, is from now on ``made(real)``."""
    real = getattr(owner, name, None)
    if real is None:
        return
    setattr(owner, name, wraps(real)(made(real)))
