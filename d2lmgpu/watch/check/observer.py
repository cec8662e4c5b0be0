"""What ``check`` watches in each process of a script, see ``watch.run``."""

from d2lmgpu.watch.check.batches import Batches
from d2lmgpu.watch.check.draws import Draws
from d2lmgpu.watch.check.evaluations import Evaluations
from d2lmgpu.watch.check.facts import Facts
from d2lmgpu.watch.check.gradients import TAUGHT, Gradients
from d2lmgpu.watch.check.learning import Learning
from d2lmgpu.watch.check.norms import Norms
from d2lmgpu.watch.check.parts import UPDATES, Parts
from d2lmgpu.watch.check.plans import Plans
from d2lmgpu.watch.check.rows import Rows
from d2lmgpu.watch.check.schedules import Schedules
from d2lmgpu.watch.check.single_process import SingleProcess
from d2lmgpu.watch.check.teacher import Teacher
from d2lmgpu.watch.cuda import on_cpu


def observe(watch) -> None:
    """Put all hooks in place. Options: see ``run.check``."""
    torch, replay = watch.torch, watch.options.get("replay")
    on_cpu(watch, watch.options.get("gpus", watch.options["devices"]))
    if watch.options["double"]:
        torch.set_default_dtype(torch.float64)
    facts = Facts(watch)
    if watch.options.get("parts"):
        _report(watch, _of_parts(watch, facts))
        return
    gradients = Gradients(watch, facts)
    parts = [facts, gradients, Batches(watch, facts, replay), Draws(watch, replay)]
    parts += [Learning(watch, facts), Norms(watch, facts, gradients), Rows(watch, facts, TAUGHT)]
    parts += [Schedules(watch, facts), Evaluations(watch, facts), Plans(watch)]
    if replay:
        parts += [Teacher(watch, facts, gradients, replay), SingleProcess(watch)]
    _report(watch, parts)


def _of_parts(watch, facts):
    """What sees a network that is cut over ranks."""
    parts = [facts, Parts(watch, facts), Batches(watch, facts, None), Rows(watch, facts, UPDATES)]
    return parts + ([SingleProcess(watch)] if watch.options["devices"] == 1 else [])


def _report(watch, parts):
    def report():
        return {key: value for part in parts for key, value in part.report().items()}

    watch.at_end(report)
