"""What would make a training step smaller, each counted anew: none is a rule of thumb."""

from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from d2lmgpu.memory import need
from d2lmgpu.memory.fit import Fit
from d2lmgpu.torch.memory.fits import fits


def sgd(parameters) -> torch.optim.SGD:
    """The optimizer that remembers nothing."""
    return torch.optim.SGD(parameters, lr=0.01)


def remedies(
    net, batch, loss, optimizer, batch_size, precision="float32", devices=1, optimizers=None
) -> dict[str, Fit]:
    """What ``fits`` says with each single change that this training can make, smallest peak first.

    Each costs the time of a call of ``fits``.

    Parameters
    ----------
    net, batch, loss, optimizer, batch_size, precision, devices
        Those of ``fits``.
    optimizers : dict, optional
        Name -> a smaller optimizer in place of ``optimizer``, made of a list of parameters; one
        with states of 8 bits, say. SGD without momentum, if it is not given.

    Returns
    -------
    dict
        Name -> ``Fit``. Beside "as it is": "mixed precision" (autocast), "recomputation" (of the
        net's blocks, see ``blocks``), "FSDP" (of the same blocks, with several devices), "fused
        attention" (where ``nn.MultiheadAttention`` returns weights that nobody asked for), and the
        optimizers. What this training has already, or cannot have, is left out.

    Raises
    ------
    ValueError
        As ``fits`` does, and for ``optimizers`` of another kind.
    """
    optimizers = {"SGD": sgd} if optimizers is None else optimizers
    good = isinstance(optimizers, dict) and all(map(callable, optimizers.values()))
    need(good, "optimizers", optimizers, "{name: a function of a list of parameters}")
    changes = set()

    def answer(change=None, **other):
        settings = {"optimizer": optimizer, "precision": precision} | other

        def made():
            network = net()
            changes.update(possible(network, devices))
            if change:
                CHANGES[change](network)
            return network

        return fits(made, batch, loss, batch_size=batch_size, devices=devices, **settings)

    answers = {"as it is": answer()}
    if precision == "float32":
        answers["mixed precision"] = answer(precision="amp float16")
    answers |= {change: answer(change) for change in CHANGES if change in changes}
    if answers["as it is"].parts["optimizer state"]:
        answers |= {name: answer(optimizer=smaller) for name, smaller in optimizers.items()}
    return dict(sorted(answers.items(), key=lambda item: item[1].peak))


def blocks(net) -> list[nn.Module]:
    """The layers of layers that stand in a row of their kind: a transformer's blocks, a ResNet's.

    Of such rows within such a layer none.
    """
    layers = [*net.children()]
    row = isinstance(net, nn.Sequential | nn.ModuleList) and len(layers) > 1
    if row and len({*map(type, layers)}) == 1 and any(layers[0].children()):
        return layers
    return [block for layer in layers for block in blocks(layer)]


def possible(net, devices) -> set[str]:
    """Which of `CHANGES` this network can have."""
    can = {"recomputation"} if blocks(net) else set()
    if devices > 1 and blocks(net) and not any(hasattr(p, "to_local") for p in net.parameters()):
        can.add("FSDP")
    if any(isinstance(module, nn.MultiheadAttention) for module in net.modules()):
        can.add("fused attention")
    return can


def recompute(net) -> None:
    """Keep each block's input only, and run it again in the backward pass."""
    for block in blocks(net):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def shard(net) -> None:
    """FSDP2 of each block, then of the whole."""
    from torch.distributed.fsdp import fully_shard

    for block in blocks(net):
        fully_shard(block)
    fully_shard(net)


def without_weights(net) -> None:
    """PyTorch's layer returns its attention weights unless told not to, and then is not fused."""
    for module in net.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.forward = partial(unweighted, module.forward)


def unweighted(forward, *args, need_weights=None, **kwargs) -> tuple:
    """``need_weights`` is off, whatever it was."""
    return forward(*args, need_weights=False, **kwargs)


CHANGES = {"recomputation": recompute, "FSDP": shard, "fused attention": without_weights}
