"""What the ranks of a pipeline do when, from the lists of operations that each of them runs.

An operation is (kind, micro-batch), or (kind, micro-batch, stage) where a rank has several stages.
The kinds: "F" forward, "B" backward; or, in its place, "I" for the gradient of the input and "W"
for that of the weights. The script beside this file draws the timetable up to a moment; without
scripts words say how long the ranks are idle, and how many micro-batches they keep.
"""

from collections import deque
from dataclasses import dataclass

from d2lmgpu.figures.checks import FigureError, is_named, is_series, need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.machine.checks import is_list, is_real, is_whole

UNITS = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}
NAMES = {
    "F": "forward pass",
    "B": "backward pass",
    "I": "gradient of the input",
    "W": "of the weights",
}
MOST = 1024  # a whole number of an operation: more is no pipeline


@dataclass(frozen=True)
class Timetable:
    """`spans`: for each rank [(kind, micro-batch, stage, start, end)], in its order."""

    spans: list

    @property
    def total(self) -> float:
        """When the last rank is done."""
        return max(end for of in self.spans for *_, end in of)

    @property
    def idle(self) -> float:
        """The share of the time, over all ranks, in which a rank computes nothing."""
        busy = sum(end - start for of in self.spans for *_, start, end in of)
        return 1 - busy / (len(self.spans) * self.total)

    @property
    def kept(self) -> list[int]:
        """For each rank, of how many micro-batches it keeps activations at most, over its stages.

        From a forward pass to the backward pass of the same stage, or to its "W".
        """
        most = []
        for of in self.spans:
            now, peaks = 0, [0]
            for kind, *_ in of:
                now += {"F": 1, "I": 0}.get(kind, -1)
                peaks.append(now)
            most.append(max(peaks))
        return most


def timetable(orders, seconds=None) -> Timetable:
    """When each operation runs if each rank runs its list, an operation as soon as it can.

    A forward pass needs the one of the stage before, a backward pass that of the stage after and
    its own forward pass. Messages take no time.

    Parameters
    ----------
    orders : list
        For each rank its operations, in its order.
    seconds : dict
        Kind -> how long it takes for all blocks of a rank; a rank with v stages takes 1/v of that
        for each. A backward pass of two units and all others of one, if none is given.

    Returns
    -------
    Timetable

    Raises
    ------
    FigureError
        For anything else, and where the ranks would wait for each other without end.
    """
    seconds = UNITS if seconds is None else seconds
    good = is_named(seconds, lambda of: is_real(of) and of > 0) and seconds
    need(good, "seconds", seconds, "{kind: a time above 0}")
    kinds = {*seconds} & {*UNITS}
    good = is_list(orders) and is_series(
        orders, lambda of: is_list(of) and is_series(of, lambda op: _is_operation(op, kinds))
    )
    need(good, "orders", orders, "for each rank its list of (kind, micro-batch) or with a stage")
    todo = [
        deque((*op, rank) if len(op) == 2 else op for op in order)
        for rank, order in enumerate(orders)
    ]
    last = max(stage for order in todo for *_, stage in order)
    several = (last + 1) / len(todo)
    ends, spans, free = {}, [[] for _ in todo], [0.0] * len(todo)
    ran = True
    while ran:
        ran = False
        for rank, order in enumerate(todo):
            while order and all(before in ends for before in _before(*order[0], last)):
                kind, i, stage = order.popleft()
                done = "B" if kind == "I" else kind, i, stage
                need(done not in ends, "orders", orders, f"each operation once: {done} is twice")
                start = max([free[rank], *(ends[of] for of in _before(kind, i, stage, last))])
                ends[done] = free[rank] = start + seconds[kind] / several
                spans[rank].append((kind, i, stage, start, free[rank]))
                ran = True
    if any(todo):
        waits = "; ".join(
            f"rank {rank} cannot run {order[0]}" for rank, order in enumerate(todo) if order
        )
        raise FigureError(f"These orders never end: {waits}, which needs what is not run before.")
    return Timetable(spans)


def _is_operation(op, kinds) -> bool:
    if not isinstance(op, tuple) or len(op) not in (2, 3) or not isinstance(op[0], str):
        return False
    return op[0] in kinds and all(is_whole(value, 0, MOST) for value in op[1:])


def _before(kind, i, stage, last) -> list:
    """What has to be done before an operation."""
    if kind == "W":
        return [("B", i, stage)]
    if kind == "F":
        return [("F", i, stage - 1)] if stage else []
    return [("F", i, stage)] + ([("B", i, stage + 1)] if stage < last else [])


class PipelineTimeline(Moving):
    """A pipeline's timetable for a schedule, ranks and micro-batches that the reader chooses.

    Parameters
    ----------
    schedules : dict
        Name -> a function of (rank, ranks, micro-batches): the operations of that rank.
    ranks, micro_batches : list
        The numbers that are offered.
    about : str
        What the times are of, as text.
    start : tuple
        The schedule, ranks and micro-batches at first; the first of each if none is given.

    Raises
    ------
    FigureError
        For anything else, and for orders with which the ranks would wait without end.
    """

    def __init__(self, schedules: dict, ranks, micro_batches, about: str, start=None):
        good = is_named(schedules, callable) and schedules
        need(good, "schedules", schedules, "{name: a function of rank, ranks, micro-batches}")
        for name, counts in (("ranks", ranks), ("micro_batches", micro_batches)):
            good = is_list(counts) and is_series(counts, lambda n: is_whole(n, 1, 64))
            need(good, name, counts, "a list of whole numbers from 1 to 64")
        need(isinstance(about, str), "about", about, "a text")
        start = (next(iter(schedules)), ranks[0], micro_batches[0]) if start is None else start
        good = isinstance(start, tuple) and len(start) == 3
        good = good and start[0] in [*schedules] and start[1] in [*ranks]
        good = good and start[2] in [*micro_batches]
        need(good, "start", start, "(schedule, ranks, micro-batches) of those that are offered")
        self.plans = {
            name: {
                p: {m: timetable([order(r, p, m) for r in range(p)]) for m in micro_batches}
                for p in ranks
            }
            for name, order in schedules.items()
        }
        data = {
            "start": {"schedule": start[0], "ranks": str(start[1]), "micro": str(start[2])},
            "names": NAMES,
            "plans": {
                name: {
                    p: {m: _as_data(plan) for m, plan in by_number.items()}
                    for p, by_number in by_ranks.items()
                }
                for name, by_ranks in self.plans.items()
            },
        }
        plan = self.plans[start[0]][start[1]][start[2]]
        words = (
            f"{start[0]}, {start[1]} ranks, {start[2]} micro-batches: each rank is idle "
            f"{plan.idle:.0%} of the time, and they keep at most "
            f"{', '.join(map(str, plan.kept))} micro-batches, modelled."
        )
        super().__init__("pipeline", data, words, about)


def _as_data(plan: Timetable) -> dict:
    return {
        "spans": [[list(span) for span in of] for of in plan.spans],
        "idle": round(plan.idle, 6),
        "kept": plan.kept,
    }
