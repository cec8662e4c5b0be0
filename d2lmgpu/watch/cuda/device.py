"""Which device is meant, and what is there in place of it."""

import os
import re
from functools import wraps

GPU = re.compile(r"cuda(:\d+)?")


class Device:
    """Called with a device as scripts write it, it gives the one that there is.

    ``line``: "file:line" of the script that asked for a GPU first, None as long as none did: what
    a library of its chooses by itself, as it has found one, the script has not asked for.
    ``index``: the present GPU's number.
    """

    def __init__(self, watch):
        self.torch = watch.torch
        self.watch = watch
        self.line = None
        self.index = 0
        self._in_torch = os.path.join(os.path.dirname(watch.torch.__file__), "")

    def is_gpu(self, device) -> bool:
        """Whether it is a GPU: by its name, as a torch.device, or by its number."""
        if isinstance(device, self.torch.device):
            return device.type == "cuda"
        if isinstance(device, str):
            return GPU.fullmatch(device) is not None
        return type(device) is int

    def __call__(self, device):
        if self.line is None and self.is_gpu(device):
            self.asked(self.watch.lines.caller(self._in_torch))
        return self.instead(device)

    def instead(self, device) -> object:
        """The one that there is; nobody has asked for it."""
        return "cpu" if self.is_gpu(device) else device

    def asked(self, line) -> None:
        """The reader's line, if it is one, has asked for a GPU."""
        self.line = self.line or line


def replaced(owner, name, made) -> None:
    """In place of ``owner.name``, if there is such a name, is from now on ``made(real)``."""
    real = getattr(owner, name, None)
    if real is None:
        return
    setattr(owner, name, wraps(real)(made(real)))
