"""What ``fits`` watches in a script: its tensors on the GPU, which take no memory here."""

import os
from contextlib import ExitStack
from functools import wraps

from d2lmgpu.memory.allocator import least, replay


def observe(watch):
    """Put a GPU in place for the rest of this process, and follow what is on it. Options:

    - ``card``, ``total``: the GPU's name and its bytes;
    - ``devices``: how many train; this process is the first.
    """
    # PyTorch must be there before these are imported
    from d2lmgpu.torch.memory.as_gpu import is_there
    from d2lmgpu.torch.memory.on_gpu import on_gpu
    from d2lmgpu.torch.memory.stand_ins import stand_ins
    from d2lmgpu.torch.memory.storages import FollowStorages

    torch, devices = watch.torch, str(watch.options["devices"])
    os.environ |= {"WORLD_SIZE": devices, "LOCAL_WORLD_SIZE": devices}  # as torchrun sets them
    storages = FollowStorages(is_there, watch.where)
    storages.answers = True

    stack = ExitStack()
    stack.enter_context(on_gpu())
    stack.enter_context(stand_ins(storages, **watch.options))
    stack.enter_context(storages)
    backward = torch.autograd.backward

    @wraps(backward)
    def passed(*args, **kwargs):
        storages.name_rest("activations")
        return backward(*args, **kwargs)

    torch.autograd.backward = passed

    def of(optimizer):
        return [p for group in optimizer.param_groups for p in group["params"]]

    def before(optimizer):
        if optimizer:
            trained = of(optimizer)
            storages.rename("parameters", trained)
            storages.name("gradients", [p.grad for p in trained if p.grad is not None])

    def after(optimizer):
        if optimizer:
            held = [value for state in optimizer.state.values() for value in state.values()]
            storages.name("optimizer state", [t for t in held if isinstance(t, torch.Tensor)])

    def report(entered=stack):  # kept here: what it has entered would be left with it
        timeline = storages.timeline
        if not timeline.events:
            return {"fit": None}
        moment, allocator = timeline.peak(), replay(timeline.events)
        return {
            "fit": {
                "peak": timeline.totals()[moment],
                "parts": timeline.parts(moment),
                "allocated": allocator.most_allocated,
                "reserved": allocator.most_reserved,
                "least": least(timeline.events, allocator),
                "looked": storages.looked,
            },
            "line": timeline.line.get(timeline.events[moment].number),
        }

    watch.steps.before.append(before)
    watch.steps.after.append(after)
    watch.at_end(report)
