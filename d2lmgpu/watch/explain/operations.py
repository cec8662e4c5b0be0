"""How many operations a step issues, and on which types: a dispatch mode for two steps only."""

from torch.utils._python_dispatch import TorchDispatchMode

from d2lmgpu.process.step_parts import LOADING


class Operations(TorchDispatchMode):
    """Counts between ``__enter__`` and ``__exit__`` what is not for loading."""

    def __init__(self, torch, parts):
        super().__init__()
        self.parts = parts
        self.torch = torch
        self.number = 0
        self.doubles = 0
        self.casts = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if self.parts.name == LOADING:
            return result
        self.number += 1
        if isinstance(result, self.torch.Tensor) and result.is_floating_point():
            self.doubles += result.dtype == self.torch.float64
            self.casts += function.overloadpacket is self.torch.ops.aten._to_copy
        return result
