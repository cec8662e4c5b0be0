"""One change to how a reader's script trains, for the rest of the process: what ``remedies`` does.

Where ``remedies`` has the pieces of a training, here there is a script that will make them.
"""

import torch
from torch import nn, optim

from d2lmgpu.torch.memory.as_gpu import replica
from d2lmgpu.torch.memory.remedies import recompute, shard


def mixed_precision(_) -> None:
    """Autocast around everything, without its cache, which would end with a block of the script."""
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_cache_enabled(False)
    real = torch.autocast.__init__

    def init(self, device_type, *args, **kwargs):
        """What a script has switched off is on; our own, of the CPU, stays as it is."""
        if device_type == "cuda":
            args, kwargs = (torch.float16,), {}
        real(self, device_type, *args, **kwargs)

    torch.autocast.__init__ = init


def recomputation(_) -> None:
    """Of each network that is called, before it is."""
    known = set()

    def called(module, _):
        if module not in known:
            known.update(module.modules())
            recompute(module)

    nn.modules.module.register_module_forward_pre_hook(called)


class SmallOptimizer(optim.SGD):
    """SGD without momentum, whatever else was asked for."""

    def __init__(self, params, *_, **__):
        super().__init__(params, lr=0.01)


def sgd(_) -> None:
    """In place of each optimizer that ``torch.optim`` has."""
    kinds = {name: kind for name, kind in vars(optim).items() if isinstance(kind, type)}
    for name, kind in kinds.items():
        if issubclass(kind, optim.Optimizer) and kind is not optim.Optimizer:
            setattr(optim, name, SmallOptimizer)


def fsdp(mode) -> None:
    """In place of DistributedDataParallel; the network keeps its wrapper."""
    without_buckets = replica(mode, 1)

    class Sharded(without_buckets):
        def __init__(self, module, *_, **__):
            shard(module)
            super().__init__(module)

    nn.parallel.DistributedDataParallel = Sharded
    nn.parallel.distributed.DistributedDataParallel = Sharded


CHANGES = {
    "mixed precision": mixed_precision,
    "recomputation": recomputation,
    "SGD": sgd,
    "FSDP": fsdp,
}
