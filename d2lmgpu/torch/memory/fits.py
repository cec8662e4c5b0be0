"""The peak of a training step: how much, what for, and what the allocator holds for it."""

import warnings

from torch import Tensor, nn

from d2lmgpu.memory import need
from d2lmgpu.memory.fit import Fit
from d2lmgpu.torch.memory.first_fsdp import held_late
from d2lmgpu.torch.memory.follow import PRECISIONS, follow
from d2lmgpu.torch.memory.group import group

OF_FSDP = (
    "FSDP2-wrapped module",
    "The passed-in `module` is on CPU",
    "Accessing the data pointer of FakeTensor",
)


def fits(net, batch, loss, optimizer, batch_size, precision="float32", devices=1) -> Fit:
    """What two updates would take of a GPU's memory. Nothing is computed, so any size is quick.

    The optimizer and autocast do what they do on a GPU (``on_gpu.py``), and the allocator is a
    model of PyTorch's (``d2lmgpu.memory.allocator``).

    Parameters
    ----------
    net : callable
        Makes the network, an ``nn.Module``.
    batch : callable
        ``batch(batch_size)`` is the tuple of what ``loss`` gets after the network.
    loss : callable
        ``loss(net, *batch)`` is the scalar that ``backward`` is called on.
    optimizer : callable
        Makes the optimizer of a list of parameters: those that require a gradient. Any
        ``torch.optim.Optimizer`` whose step can be called without a closure, states of 8 bits
        included: what its steps allocate is counted, and what stays of it is its state. One that
        calls a GPU's own operations, as bitsandbytes does, cannot run here; one in PyTorch's
        operations with states of the same types can stand for it.
    batch_size : int
        Examples on the device.
    precision : str
        One of "float32", "amp float16", "amp bfloat16" (autocast) and "bfloat16" (all of it).
    devices : int
        So many train together, and this is the first of them. What ``net`` makes may be sharded
        by ``fully_shard`` (FSDP2, which is ZeRO-3; with ``reshard_after_forward=False`` ZeRO-2)
        or by ``FullyShardedDataParallel``, the first FSDP. Any other network is as under
        DistributedDataParallel, with the buckets in which gradients are exchanged (without
        ``gradient_as_bucket_view``). With an optimizer in PyTorch's ``ZeroRedundancyOptimizer``
        that is ZeRO-1. The first device has the largest parameter.

    Returns
    -------
    Fit
        Bytes, by what they are for.

    Raises
    ------
    ValueError
        An argument is none of these.

    References
    ----------
    The idea of playing the lifetimes of blocks through such a model is that of xMem
    (arXiv 2510.21048).
    """
    for name, value in {"net": net, "batch": batch, "loss": loss, "optimizer": optimizer}.items():
        called = callable(value) and not (name == "net" and isinstance(value, nn.Module))
        need(called, name, value, "a function, see the docstring")
    need.whole("batch_size", batch_size)
    need.choice("precision", precision, PRECISIONS)
    need.whole("devices", devices)

    def scalar(net, *inputs):
        value = loss(net, *inputs)
        right = isinstance(value, Tensor) and value.numel() == 1 and value.requires_grad
        need(right, "loss", value, "a function that returns a tensor of one number, for backward")
        return value

    with group(devices) as wrapped, warnings.catch_warnings():
        # FSDP2 of a layer that returns a view, which is a matter of those who change it in place;
        # the first FSDP of what is on a CPU, and its look at where fake tensors are.
        for text in OF_FSDP:
            warnings.filterwarnings("ignore", text, UserWarning)
        timeline, looked = follow(net, batch, scalar, optimizer, batch_size, precision, devices)
        late = held_late(wrapped)
    return Fit.of(timeline, looked, late)
