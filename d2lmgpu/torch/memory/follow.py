"""Some steps of training on fake tensors, with every storage that they take."""

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from d2lmgpu.memory import need
from d2lmgpu.torch.memory.first_fsdp import is_sharded
from d2lmgpu.torch.memory.on_gpu import on_gpu
from d2lmgpu.torch.memory.storages import FollowStorages, NumberNeeded

PRECISIONS = {  # name -> (autocast computes in, parameters are in)
    "float32": (None, torch.float32),
    "amp float16": (torch.float16, torch.float32),
    "amp bfloat16": (torch.bfloat16, torch.float32),
    "bfloat16": (None, torch.bfloat16),
}
NUM_STEPS = 2  # the second has the optimizer's state from its beginning
SECOND_STEP = 2  # what an optimizer is told of its count of steps; NAdam divides by 1 - a number


def follow(net, batch, loss, optimizer, batch_size, precision, devices) -> tuple:
    """The timeline of `NUM_STEPS` updates, and how often they looked at a number.

    See ``fits.fits`` for what is given.
    """
    computes, holds = PRECISIONS[precision]
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with on_gpu(), fake, FollowStorages() as storages, default_dtype(holds):
        net = fake_network(net, fake)
        storages.forget()  # it comes from the CPU, whatever was needed to make it
        storages.name("parameters", [*net.parameters(), *net.buffers()])
        trained = [p for p in net.parameters() if p.requires_grad]
        for p in trained:
            p.register_post_accumulate_grad_hook(lambda p: storages.name("gradients", [p.grad]))
        sharded = any(map(is_traceable_wrapper_subclass, trained)) or is_sharded(net)
        exchanged = buckets(trained) if devices > 1 and not sharded else []
        storages.name("buckets", exchanged)
        trainer = optimizer(trained)
        need(is_simple(trainer), "optimizer", trainer, "one whose step needs no closure")
        storages.answers = True
        for _ in range(NUM_STEPS):
            trainer.zero_grad()
            inputs = batch(batch_size)
            storages.name("batch", tensors(inputs))
            before = storages.alive()
            with torch.autocast("cpu", computes) if computes else nullcontext():
                value = loss(net, *inputs)
            storages.name_since(before, "activations")
            value.backward()
            del value
            looked, begin, before = storages.looked, len(storages.timeline.events), storages.alive()
            storages.number = SECOND_STEP
            # of the first FSDP, whose hooks come after ours
            storages.name("gradients", [p.grad for p in trained if p.grad is not None])
            trainer.step()
            storages.timeline.updates.append(range(begin, len(storages.timeline.events)))
            # It looks at its own count of steps, on which no shape depends
            storages.number, storages.looked = 1, looked
            storages.name("optimizer state", tensors(dict(trainer.state)))
            storages.name_since(before, "optimizer state")  # wherever it keeps that
    del exchanged
    return storages.timeline, storages.looked


def is_simple(optimizer) -> bool:
    """Whether its step can be called without a function that computes the loss again."""
    parameters = inspect.signature(optimizer.step).parameters.values()
    return all(p.default is not p.empty for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)


def buckets(parameters) -> list[torch.Tensor]:
    """The tensors in which DDP exchanges the gradients: of the last layer first."""
    backwards = parameters[::-1]
    limits = [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, 25 * 2**20]
    groups, _ = torch.distributed._compute_bucket_assignment_by_size(backwards, limits)
    return [
        torch.empty(sum(backwards[i].numel() for i in group), dtype=backwards[group[0]].dtype)
        for group in groups
    ]


def fake_network(make, fake) -> torch.nn.Module:
    """The network that ``make`` makes, with fake tensors.

    One whose layers depend on numbers (torchvision's RegNet) is made for real, then copied.
    """
    draw = mock.patch.object(
        torch.nn.init, "_no_grad_trunc_normal_", lambda tensor, *_, **__: tensor
    )
    try:
        with draw:  # it draws until the numbers are right, which here would never end
            return make()
    except NumberNeeded:
        pass
    with torch.utils._python_dispatch._disable_current_modes():
        net = make()
    with FakeCopyMode(fake):
        return copy.deepcopy(net)


@contextmanager
def default_dtype(dtype) -> Iterator[None]:
    """Within it tensors are made of ``dtype``."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def tensors(tree) -> list[torch.Tensor]:
    """All tensors in lists and dictionaries, however nested."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
