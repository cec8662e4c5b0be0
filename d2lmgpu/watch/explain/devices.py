"""What ``explain`` sees of a function whose devices are threads of one process: each as a rank.

A step and its parts are those of ``process.lanes``: making the batch and exchanging are done once
for all devices; what ``parallel`` runs is computing, of each device in its own thread. There the
time that a thread neither computes nor queues for a core it waits for Python's lock.
"""

import threading
import time
from functools import wraps

from d2lmgpu.machine.timing import Queue
from d2lmgpu.process import lanes
from d2lmgpu.watch.explain.observer import WARM, facts
from d2lmgpu.watch.explain.parts import LAST, LOCK, OTHER, faults
from d2lmgpu.watch.explain.samples import Samples

_here = threading.local()


def clock():
    """Wall time, processor time and queued time of this thread."""
    if not hasattr(_here, "queue"):
        _here.queue, _here.backward = Queue(), [0.0] * 3
    return time.monotonic(), time.thread_time(), _here.queue.seconds()


def since(before):
    return [b - a for a, b in zip(before, clock())]


def observe(watch):
    lanes.listen(steps=lambda *settings: Devices(watch, *settings))


class Devices(lanes.Steps):
    """The steps of the process: `ranks[d]` has those of device d, as an Observer reports them."""

    def __init__(self, watch, *settings):
        super().__init__(*settings)
        self.watch, self.name, self.ranks, self.number = watch, OTHER, [], 0
        self.told, self.spent, self.mark, self.bytes, self.samples = {}, [], clock(), 0, None
        self.aside, self.exchanges, self.faults = 0.0, 0, 0
        real, backward = lanes.parallel, watch.torch.Tensor.backward
        lanes.parallel = lambda *args, **kwargs: self.computing(real, *args, **kwargs)

        @wraps(backward)
        def timed(*args, **kwargs):
            before = clock()
            backward(*args, **kwargs)
            _here.backward = [a + b for a, b in zip(_here.backward, since(before))]

        watch.torch.Tensor.backward = timed
        watch.at_end(self.report)

    def computing(self, real, run, fn, *args, **kwargs):
        """``lanes.parallel``, with the clocks of each device's thread."""
        if not lanes.timing() or self.inside:
            return real(run, fn, *args, **kwargs)
        spent, self.name = [None] * len(args[0]), "computing"

        def clocked(device, *own):
            before, _here.backward = clock(), [0.0] * 3
            result = fn(*own)
            spent[device] = since(before), _here.backward, own
            return result

        try:
            return real(run, clocked, range(len(spent)), *args, **kwargs)
        finally:
            self.spent, self.name = spent, OTHER

    def begin(self):
        super().begin()
        self.first = self.mark = clock()
        self.told, self.spent, self.name = {}, [], "loading"

    def settle(self):
        """A part begins or ends."""
        if self.name == OTHER:
            self.name, self.mark = "exchange", clock()

    def add(self, what, start, end, device=None):
        super().add(what, start, end, device)
        if what in ("loading", "exchanging"):
            seen = self.told.setdefault({"exchanging": "exchange"}.get(what, what), [0.0] * 3)
            seen[:] = [a + b for a, b in zip(seen, since(self.mark))]
            self.name, self.exchanges = OTHER, self.exchanges + (what == "exchanging")

    def end(self):
        if self.spans is None:
            return
        self.spans, self.name = None, OTHER
        if not self.spent or None in self.spent:  # the batch was not for training
            self.aside += since(self.first)[0]
            return
        self.number += 1
        if self.number == WARM:
            self.samples, self.faults = Samples(self, self.watch.where), faults()
            self.exchanges, self.aside = 0, 0.0
        if self.number > WARM:
            self.keep()

    def keep(self):
        """Write the step down for each device."""
        whole = since(self.first)
        apart = [sum(part[i] for part in self.told.values()) for i in range(3)]
        longest = max(own[0][0] for own in self.spent)
        rest = max(0.0, whole[0] - apart[0] - longest - max(0.0, whole[2] - apart[2]))
        exchange = self.told.get("exchange", [0.0] * 3)
        shared = {"loading": self.told.get("loading", [0.0] * 3), OTHER: [rest, rest, 0.0],
                  "exchange": [exchange[0] - exchange[2], 0.0, 0.0],
                  "evaluating": [self.aside, self.aside, 0.0]}  # fmt: skip
        self.aside = 0.0
        self.ranks = self.ranks or [[] for _ in self.spent]
        for rank, (total, back, own) in zip(self.ranks, self.spent):
            ahead = [a - b for a, b in zip(total, back)]
            computed = {name: [part[1], part[1], 0.0]
                        for name, part in (("forward", ahead), ("backward", back))}  # fmt: skip
            lock = max(0.0, total[0] - total[1] - total[2])
            parts = shared | computed | {LOCK: [lock, lock, 0.0]}
            given = rows(self.watch.torch, own)
            rank.append((self.first[0], self.first[0] + whole[0], parts, given))
        self.bytes = weights(self.watch.torch, own)
        self.watch.recorded(len(self.ranks))

    def report(self):
        """One report; ``devices`` has that of each."""
        if self.samples is None or not self.ranks:
            return {"devices": []}
        self.samples.stop()
        lines = [[name, line, n] for (name, line), n in self.samples.lines.most_common(60)]
        alone = [[line, n] for name, line, n in lines if name == "computing"]
        others = [[line, n] for (_, line), n in self.samples.others.most_common(20)]
        lines += [[name, *seen] for seen in others or alone for name in ("forward", "backward")]
        first = self.ranks[0]
        exchanged = sum(step[2]["exchange"][0] for step in first)
        where = next((line for name, line, _ in lines if name == "exchange" and line), None)
        calls = [
            ["all_reduce", where, self.exchanges, self.bytes * len(first), exchanged, exchanged]
        ]
        return {"devices": [facts(self.watch) | {
            "rank": number, "in_threads": True, "measured": len(rank), "ddp": False,
            "steps_told": [step[:3] for step in rank], "faults": faults() - self.faults,
            "rows": sum(step[3] for step in rank), "elements": 0,
            "backwards_told": len(rank), "exchanging": 0, "prints": [], "lines": lines,
            "calls": calls if self.exchanges else [], "operations": 0, "doubles": 0.0, "casts": 0.0,
            "others": [], "python_threads": 0.0, "distributed": True, "data_parallel": None,
            "gradient_bytes": self.bytes, "loaders": [], "spans": spans(rank),
        } for number, rank in enumerate(self.ranks)]}  # fmt: skip


def tensors(torch, own):
    """All tensors in the arguments of a device's function, those in lists and networks, too."""
    for value in own:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, torch.nn.Module):
            yield from value.parameters()
        elif isinstance(value, (list, tuple)):
            yield from tensors(torch, value)


def rows(torch, own):
    return next((len(t) for t in tensors(torch, own) if not t.requires_grad and t.dim()), 0)


def weights(torch, own):
    return sum(t.numel() * t.element_size() for t in tensors(torch, own) if t.requires_grad)


def spans(steps):
    """(step, part, start, end) of the last steps, the parts one behind the other."""
    told = []
    for number, (at, _, parts, _) in enumerate(steps[-LAST:]):
        for name in ("loading", "forward", "backward", LOCK, "exchange", OTHER):
            told.append((number, name, at, at + parts[name][0]))
            at += parts[name][0]
    return told
