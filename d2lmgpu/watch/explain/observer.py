"""What ``explain`` sees of a process that trains, see ``watch.run``: times by part, and facts.

The first steps warm up. In the two after them operations are counted, which takes time; all later
ones are measured.
"""

import os
import threading

from d2lmgpu.watch.cuda import on_cpu
from d2lmgpu.watch.cuda.costs import Costs
from d2lmgpu.watch.explain.hooks import Hooks
from d2lmgpu.watch.explain.messages import ExplainReport, Loader, NothingMeasured, SetUp
from d2lmgpu.watch.explain.parts import CORES, THREADS, Parts, faults, threads
from d2lmgpu.watch.explain.samples import Samples, busy_threads

WARM, COUNTED = 3, 2  # steps


def observe(watch) -> None:
    """Put the hooks in place; see the module. Option ``devices``: of a script, how many at most."""
    if devices := watch.options.get("devices"):
        Costs(watch, on_cpu(watch, devices))
    Observer(watch)


class Observer:
    def __init__(self, watch):
        self.watch, self.parts = watch, Parts()
        self.hooks = Hooks(watch, self.parts)
        self.samples = None
        self.operations = None
        self.before = None
        self.counted = None
        self.faults = 0
        watch.steps.after.insert(1, self.stepped)  # behind the end of the update
        watch.at_end(self.report)

    def stepped(self, optimizer) -> None:
        """A step has ended."""
        self.watch.recorded(len(self.parts.step()[2]))
        number = len(self.parts.steps)
        if number == WARM:
            from d2lmgpu.watch.explain.operations import Operations

            self.operations = Operations(self.watch.torch, self.parts)
            self.operations.__enter__()
        elif number == WARM + COUNTED:
            self.operations.__exit__(None, None, None)
            self.counted, self.set_up = len(self.parts.steps), facts(self.watch)
            self.before = threads()
            self.hooks.counting = True
            self.faults = faults()
            self.samples = Samples(self.parts, self.watch.lines.where)

    def report(self) -> ExplainReport | NothingMeasured:
        """What this rank adds to the report of its process."""
        if self.counted is None or len(self.parts.steps) <= self.counted:
            return {"measured": 0}
        self.samples.stop()
        main = next((t.native_id for t in threading.enumerate() if t.ident == self.parts.thread), 0)
        after, steps, hooks = threads(), self.parts.steps[self.counted :], self.hooks
        busy = busy_threads(self.before, after, main)
        return {
            "measured": len(steps),
            "measured_steps": steps,
            "spans": self.parts.spans,
            "faults": faults() - self.faults,
            "rows": hooks.rows,
            "elements": hooks.elements,
            "measured_backwards": hooks.backwards,
            "exchanging": hooks.exchanging,
            "exchanged": hooks.exchanged,
            "prints": hooks.prints,
            "calls": [[*key, *value] for key, value in [*hooks.calls.items()]],
            "operations": self.operations.number / COUNTED,
            "doubles": self.operations.doubles / max(1, self.operations.number),
            "casts": self.operations.casts / COUNTED,
            "lines": [[*key, n] for key, n in self.samples.lines.most_common(60)]
            + [[*key, 0] for key in [*hooks.first.items()]],
            "others": [
                [busy.get(i, 0.0), line, n] for (i, line), n in self.samples.others.most_common(20)
            ],
            "python_threads": sum(busy.values()),
            **self.facts(),
        }

    def facts(self) -> dict:
        """What needs no clock."""
        hooks = self.hooks
        values = [p for net in hooks.ddp for p in net.parameters() if p.requires_grad]
        groups = self.watch.steps.leading.param_groups if self.watch.steps.leading else []
        values = values or [p for group in groups for p in group["params"]]
        return {
            **self.set_up,
            "ddp": bool(hooks.ddp),
            "data_parallel": hooks.data_parallel,
            "gradient_bytes": sum(p.numel() * p.element_size() for p in values),
            "loaders": [self._loader(loader, line) for loader, line in hooks.loaders],
        }

    def _loader(self, loader, line) -> Loader:
        return {
            "where": line,
            "of": _length(loader.dataset),
            "mine": _rows(loader),
            "batch": loader.batch_size,
            "workers": loader.num_workers,
            "epochs": self.hooks.batches[id(loader)],
        }


def _rows(loader):
    """How many rows the loader takes of its data; None if that is not known.

    Batches may be shared out in place of rows, as Accelerate does: then the sampler has all rows.
    """
    batches = loader.batch_sampler
    if batches is None or type(batches).__module__.startswith("torch."):
        return _length(loader.sampler)
    rows = getattr(batches, "batch_size", None)
    number = _length(batches) if rows else None
    return None if number is None else number * rows


def _length(thing):
    return len(thing) if hasattr(thing, "__len__") else None


def facts(watch) -> SetUp:
    """Threads and cores of this thread, which trains, and what has set them."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "framework": "torch" if watch.torch else "mxnet",
        "cores": cores,
        "set": watch.lines.set,
        "threads": watch.torch.get_num_threads() if watch.torch else 1,
        "environ": {name: os.environ[name] for name in (*THREADS, *CORES) if name in os.environ},
    }
