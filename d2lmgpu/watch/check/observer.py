"""What ``check`` watches in each process of a script, see ``watch.run``."""

from d2lmgpu.watch.check.batches import Batches
from d2lmgpu.watch.check.facts import Facts
from d2lmgpu.watch.check.gradients import Gradients
from d2lmgpu.watch.cuda import on_cpu


def observe(watch):
    """Put all hooks in place. Options: see ``run.check``."""
    torch = watch.torch
    on_cpu(watch, watch.options["devices"])
    if watch.options["double"]:
        torch.set_default_dtype(torch.float64)
    facts = Facts(watch)
    gradients = Gradients(watch, facts)
    batches = Batches(watch, facts, gradients)
    watch.at_end(lambda: facts.report() | gradients.report() | batches.report())
