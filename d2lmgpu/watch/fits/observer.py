"""What ``fits`` watches in a script: its tensors on the GPU, which take no memory here."""

import os
from contextlib import ExitStack
from dataclasses import asdict
from functools import wraps

from d2lmgpu.memory.fit import Fit


def observe(watch) -> None:
    """Put a GPU in place for the rest of this process, and follow what is on it. Options:

    - ``card``, ``total``: the GPU's name and its bytes;
    - ``devices``: how many train; this process is the first;
    - ``remedy``: which of `d2lmgpu.torch.memory.script_changes.CHANGES` is made before; may be
      missing.
    """
    # PyTorch must be there before these are imported
    from d2lmgpu.torch.memory.as_gpu import is_there
    from d2lmgpu.torch.memory.first_fsdp import held_late
    from d2lmgpu.torch.memory.follow import SECOND_STEP, tensors
    from d2lmgpu.torch.memory.on_gpu import on_gpu
    from d2lmgpu.torch.memory.script_changes import CHANGES
    from d2lmgpu.torch.memory.stand_ins import stand_ins
    from d2lmgpu.torch.memory.storages import FollowStorages

    torch, devices = watch.torch, str(watch.options["devices"])
    os.environ |= {"WORLD_SIZE": devices, "LOCAL_WORLD_SIZE": devices}  # as torchrun sets them
    storages = FollowStorages(is_there, watch.lines.where)
    storages.answers = True

    stack = ExitStack()
    stack.enter_context(on_gpu())
    remedy = watch.options.pop("remedy", None)
    mode = stack.enter_context(stand_ins(storages, **watch.options))
    stack.enter_context(storages)
    if remedy:
        CHANGES[remedy](mode)
    backward = torch.autograd.backward

    add = torch.optim.Optimizer.add_param_group
    trained, known = [], set()

    @wraps(add)
    def added(optimizer, group):
        add(optimizer, group)
        trained.extend(optimizer.param_groups[-1]["params"])

    def before(*_):
        storages.rename("parameters", trained)
        storages.name("gradients", [p.grad for p in trained if p.grad is not None])

    @wraps(backward)
    def passed(*args, **kwargs):
        before()  # of earlier batches, where several make an update
        storages.name_rest("activations")
        return backward(*args, **kwargs)

    torch.optim.Optimizer.add_param_group, torch.autograd.backward = added, passed

    def updates(*_):
        before()
        known.clear()
        known.update(storages.alive())
        storages.number = SECOND_STEP

    def after(optimizer):
        storages.number = 1
        if optimizer:
            storages.name("optimizer state", tensors(dict(optimizer.state)))
            storages.name_since(known, "optimizer state")  # wherever it keeps that

    def report(entered=stack):  # kept here: what it has entered would be left with it
        timeline = storages.timeline
        if not timeline.events:
            return {"fit": None}
        last = timeline.events[timeline.peak()].number
        fit = Fit.of(timeline, storages.looked, held_late(mode.wrapped))
        return {"fit": asdict(fit), "line": timeline.line[last]}

    watch.steps.before.append(updates)
    watch.steps.after.append(after)
    watch.at_end(report)
