"""What ``explain`` sees of a function whose devices are threads of one process: each as a rank.

A step and its parts are those of ``process.lanes``: making the batch and exchanging are done once
for all devices; what ``parallel`` runs is computing, of each device in its own thread. There the
time that a thread neither computes nor queues for a core it waits for Python's lock. MXNet computes
in threads of its engine, so there all devices compute for as long as ``parallel`` takes, and that
lock is not seen.
"""

import threading
from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np

from d2lmgpu.machine.core_queue import Queue
from d2lmgpu.process.lanes import LISTENER, Steps
from d2lmgpu.process.step_parts import COMPUTING, EXCHANGING, LOADING, LOCK, OTHER
from d2lmgpu.watch.explain.messages import DevicesReport
from d2lmgpu.watch.explain.observer import WARM, facts
from d2lmgpu.watch.explain.parts import LAST, faults, now
from d2lmgpu.watch.explain.samples import Samples

DRAWN = (LOADING, COMPUTING, EXCHANGING)  # of a lane
_of_thread = threading.local()


def clock() -> tuple:
    """Wall time, processor time and queued time of this thread."""
    if not hasattr(_of_thread, "queue"):
        _of_thread.queue = Queue()
    return now(_of_thread.queue)


def since(before) -> list:
    """The same, less what they were."""
    return [b - a for a, b in zip(before, clock())]


def observe(watch) -> None:
    if watch.torch:
        LISTENER.listen(Devices(watch))
    else:
        from d2lmgpu.mxnet.lanes import listen

        listen("cpu", partial(Devices, watch))


class Devices(Steps):
    """The steps of the process: ``ranks[d]`` has those of device d, as an Observer reports them."""

    def __init__(self, watch, *settings, **further):
        super().__init__(*settings, **further)
        self.watch = watch
        self.name = OTHER
        self.ranks = []
        self.seen = 0
        self.bytes = 0
        self.durations = {}
        self.spent = []
        self.samples = None
        self.exchanges = 0
        self.drawn = deque(maxlen=LAST)
        self.mark = clock()
        watch.at_end(self.report)

    def parallel(self, run, fn, *args, **kwargs) -> list:
        """With the clocks of each device's thread."""
        spent, self.name = [None] * len(args[0]), COMPUTING

        def clocked(device, *own):
            before = clock()
            result = fn(*own)
            spent[device] = since(before), own
            return result

        try:
            return super().parallel(run, clocked, range(len(spent)), *args, **kwargs)
        finally:
            self.spent, self.name = spent, OTHER

    def begin(self, samples) -> None:
        super().begin(samples)
        self.first = self.mark = clock()
        self.durations = {}
        self.spent = []
        self.name = LOADING

    def settle(self) -> None:
        """A part begins or ends."""
        super().settle()
        if self.name == OTHER:
            self.name, self.mark = EXCHANGING, clock()

    def add(self, what, start, end, device=None) -> None:
        super().add(what, start, end, device)
        if what in (LOADING, EXCHANGING):
            wall, _, queued = since(self.mark)
            own = max(0.0, wall - queued)  # the clocks are read one after another
            self.durations[what] = self.durations.get(what, 0.0) + own
            self.name, self.exchanges = OTHER, self.exchanges + (what == EXCHANGING)
        elif what == COMPUTING and self.wait:  # nobody knows which device had to wait
            self.durations[what] = self.durations.get(what, 0.0) + end - start

    def end(self) -> None:
        spans, self.spans, self.name = self.spans, None, OTHER
        if spans is None:
            return
        if self.wait:  # MXNet, of which nobody else sees a step
            self.wait()
            self.watch.steps.step_ended()
        if not self.spent or None in self.spent:
            return  # no devices that can be told apart, or the batch was not for training
        self.seen += 1
        self.drawn.append((self.seen, spans))
        if self.seen == WARM:
            self.samples, self.faults = Samples(self, self.watch.lines.where), faults()
            self.exchanges, self.set_up = 0, facts(self.watch)
        elif self.seen > WARM:
            self.keep()

    def keep(self) -> None:
        """Write the step down for each device."""
        wall, _, queued = since(self.first)
        together = self.durations.pop(COMPUTING, None)
        computing = together or max(total[0] for total, _ in self.spent)
        other = max(0.0, wall - queued - sum(self.durations.values()) - computing)
        shared = {LOADING: self.durations.get(LOADING, 0.0), OTHER: other}
        self.ranks = self.ranks or [[] for _ in self.spent]
        for rank, ((total, cpu, waited), own) in zip(self.ranks, self.spent):
            apart = {COMPUTING: cpu, LOCK: max(0.0, total - cpu - waited)}
            of_device = shared | ({COMPUTING: together} if together else apart)
            parts = {name: [seconds, seconds, 0.0] for name, seconds in of_device.items()}
            parts[EXCHANGING] = [self.durations.get(EXCHANGING, 0.0), 0.0, 0.0]
            rows, self.bytes = measured(self.watch.torch, own)
            rank.append((self.first[0], self.first[0] + wall, parts, rows))
        self.watch.recorded(len(self.ranks))

    def report(self) -> DevicesReport:
        """One report; ``devices`` has that of each."""
        if not self.ranks:
            return {"devices": []}
        self.samples.stop()
        lines = [[COMPUTING, line, n] for (_, line), n in self.samples.others.most_common(20)]
        lines += [[name, line, n] for (name, line), n in self.samples.lines.most_common(60)]
        where = next((line for name, line, _ in lines if name == EXCHANGING and line), None)
        spent = sum(step[2][EXCHANGING][0] for step in self.ranks[0])
        size = self.bytes * len(self.ranks[0])
        calls = [["all_reduce", where, self.exchanges, size, spent, spent]]
        zeros = dict.fromkeys(
            ("elements", "exchanging", "operations", "doubles", "casts", "python_threads"), 0
        )
        return {
            "devices": [
                self.set_up
                | zeros
                | {
                    "rank": number,
                    "in_threads": True,
                    "measured": len(rank),
                    "ddp": False,
                    "measured_steps": [step[:3] for step in rank],
                    "faults": faults() - self.faults,
                    "rows": sum(step[3] for step in rank),
                    "measured_backwards": len(rank),
                    "prints": [],
                    "lines": lines,
                    "calls": calls if self.exchanges else [],
                    "others": [],
                    "loaders": [],
                    "distributed": True,
                    "data_parallel": None,
                    "gradient_bytes": self.bytes,
                    "exchanged": size if self.exchanges else 0,
                    "spans": list(self.spans_of(number)),
                }
                for number, rank in enumerate(self.ranks)
            ]
        }

    def spans_of(self, number) -> Iterator[tuple]:
        """(step, part, start, end) of one device, as ``parts.Parts`` keeps them."""
        for step, spans in [*self.drawn]:
            for device, what, start, end in spans:
                if what in DRAWN and device in (None, number):
                    yield step, what, start, end


def measured(torch, own) -> tuple[int, int]:
    """(rows, bytes of gradients) of a device's arguments; weights may be in lists or networks.

    torch: that module, None for MXNet.
    """
    flat = []
    for value in own:
        if hasattr(value, "parameters"):
            value = list(value.parameters())
        elif hasattr(value, "collect_params"):
            value = [parameter.list_data()[0] for parameter in value.collect_params().values()]
        flat += value if isinstance(value, (list, tuple)) else [value]
    arrays = [a for a in flat if hasattr(a, "requires_grad" if torch else "attach_grad")]
    trained = [a.requires_grad if torch else a.grad is not None for a in arrays]
    rows = next((len(a) for a, ours in zip(arrays, trained) if not ours and a.ndim), 0)
    sizes = [a.nbytes if torch else a.size * np.dtype(a.dtype).itemsize for a in arrays]
    return rows, sum(size for size, ours in zip(sizes, trained) if ours)
