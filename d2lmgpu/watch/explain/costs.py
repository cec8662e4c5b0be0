"""Causes that are measured: what part of a step costs most, and what the script does in it.

Each rule is given the run with several devices and that with one (None where there is none).
"""

from collections.abc import Iterator

from d2lmgpu.process.step_parts import (
    BACKWARD,
    EVALUATING,
    FORWARDS,
    LOADING,
    LOCK,
    OTHER,
    PASSES,
    UPDATE,
)
from d2lmgpu.watch.explain.causes import Cause, Kind
from d2lmgpu.watch.explain.summary import ISSUE, SMALL

MANY_OPERATIONS, SHORT = 700, 30e-6  # of a step; seconds of an operation that is mostly issuing
FEW_ROWS = 16  # of a rank: less is a small batch
MUCH = 4 * 2**20  # bytes of gradients that are more than a small network has
NO_GRADIENTS = ("broadcast", "scatter", "barrier", "monitored_barrier")

LOADER = Kind(
    "loader",
    "Do that work once before training, or give the DataLoader num_workers=1 or more.",
)
STRAGGLER = Kind(
    "straggler",
    "Give every rank equal work: deal rows out in turn or shuffle them, and batch texts of like "
    "length.",
)
RANK0_WORK = Kind(
    "rank0-work",
    "Do it less often, share it among the ranks, or let a thread or process do it.",
)
PYTHON = Kind(
    "python",
    "Do that work before training or in a process: Python threads share one lock.",
)
HOST_BOUND = Kind(
    "host-bound",
    "Do the same with fewer, larger operations: whole tensors in place of a loop.",
)
SLOW_DTYPE = Kind(
    "slow-dtype",
    "Use float32: .float() on data that comes from NumPy, and no set_default_dtype.",
)
SYNC = Kind(
    "sync",
    "Do it every hundredth step, or put all numbers in one tensor and exchange that.",
)
SLOW_EXCHANGE = Kind(
    "slow-exchange",
    "Exchange less: sparse gradients or a smaller table, no broadcast in a step (DDP keeps the "
    "weights equal), a larger batch.",
)
NO_OVERLAP = Kind(
    "no-overlap",
    "Wrap the net in DistributedDataParallel; when gradients are accumulated, use no_sync() in all "
    "but the last backward pass.",
)
SMALL_BATCH = Kind(
    "small-batch",
    "Give each device more rows: raise the batch size and with it lr.",
)


def loader(run, single) -> Iterator[Cause]:
    share = max(run.part((LOADING,))) / run.seconds
    where = run.line(LOADING) or next((x["where"] for x in run.ranks[0]["loaders"]), None)
    workers = next((x["workers"] for x in run.ranks[0]["loaders"] if x["epochs"]), 0)
    yield Cause(LOADER, share, where, f"The ranks wait for their data ({workers} workers load it).")


def straggler(run, single) -> Iterator[Cause]:
    if run.k == 1:
        return
    spent = run.part((LOADING, *PASSES, UPDATE))
    slowest = spent.index(max(spent))
    share = (max(spent) - sum(spent) / run.k) / run.seconds
    times = max(spent) / max(1e-9, min(spent))
    rows = " and ".join(f"{rank['rows'] / rank['measured']:,.0f}" for rank in run.ranks)
    sentence = (
        f"Rank {slowest} has {times:.1f} times the work of the fastest rank (rows a step: {rows})."
    )
    yield Cause(STRAGGLER, share, run.line(*FORWARDS, rank=slowest), sentence)


def rank0_work(run, single) -> Iterator[Cause]:
    if run.k == 1:
        return
    first, *others = run.aside()
    share = (first - max(others)) / run.seconds
    sentence = "Rank 0 works beside the training while the others wait."
    yield Cause(RANK0_WORK, share, run.line(EVALUATING) or run.line(OTHER), sentence)


def python(run, single) -> Iterator[Cause]:
    if run.in_threads and run.k > 1:
        locked = max(run.part((LOCK,))) / run.seconds
        sentence = "The devices' threads wait for Python's lock."
        yield Cause(PYTHON, locked, run.line(*FORWARDS), sentence)
    busy = sum(rank["python_threads"] for rank in run.ranks)
    python_seconds = sum(
        part[1]
        for rank in run.ranks
        for step in rank["measured_steps"]
        for part in step[2].values()
    )
    others = run.ranks[0]["others"]
    where = max(others, key=lambda call: (call[0], call[2]))[1] if others else None
    sentence = "Other Python threads compute beside the step and hold Python's lock."
    yield Cause(PYTHON, busy / max(1e-9, busy + python_seconds), where, sentence)


def host_bound(run, single) -> Iterator[Cause]:
    number = run.ranks[0]["operations"]
    compute = max(run.part((*PASSES, UPDATE, OTHER)))
    if number >= MANY_OPERATIONS and compute / number < SHORT:
        share = min(1.0, number * ISSUE / run.seconds)
        sentence = (
            f"A step issues {number:,.0f} operations of {1e6 * compute / number:.0f} µs each: "
            "mostly the issuing takes time."
        )
        yield Cause(HOST_BOUND, share, run.line(*FORWARDS) or run.line(OTHER), sentence)


def slow_dtype(run, single) -> Iterator[Cause]:
    report = run.ranks[0]
    compute = max(run.part((*PASSES, UPDATE))) / run.seconds
    if report["doubles"] > 0.2:
        sentence = f"{report['doubles']:.0%} of the operations are in float64."
        yield Cause(SLOW_DTYPE, compute / 2, run.line(*FORWARDS), sentence)
    elif report["casts"] > 0.2 * report["operations"]:
        share = compute * report["casts"] / report["operations"]
        sentence = f"A step converts types {report['casts']:.0f} times."
        yield Cause(SLOW_DTYPE, share, run.line(*FORWARDS), sentence)


def exchange(run, single) -> Iterator[Cause]:
    """What is exchanged, when, and how often."""
    if run.k == 1:
        return
    gradients = _gradients_by_hand(run)
    hand = gradients and gradients[:2]
    calls = [call for call in run.calls() if call[:2] != hand]
    small = [c for c in calls if c[2] >= 0.5 and (c[3] <= SMALL or "object" in c[0])]
    if small:
        most = max(small, key=lambda call: call[4])
        share = sum(call[4] for call in small) / run.seconds
        number = f"{sum(c[2] for c in small):.0f} small collectives ({most[0]})"
        yield Cause(SYNC, share, most[1], f"Each step has {number}, and all ranks wait in each.")
    large = [c for c in calls if c not in small and c[2] >= 0.5]
    if large:
        most = max(large, key=lambda call: call[4])
        share = sum(call[4] for call in large) / run.seconds
        sent = f"{_megabytes(most[2] * most[3])} by {most[0]}"
        yield Cause(SLOW_EXCHANGE, share, most[1], f"Each step sends {sent}, beside the gradients.")
    others = sum(call[4] for call in small + large)
    yield _of_gradients(run, single, gradients, max(0.0, run.exchange - others) / run.seconds)


def _gradients_by_hand(run):
    """The script's own exchange of gradients: the collective with the most bytes; None with DDP."""
    if run.ranks[0]["ddp"]:
        return None
    calls = [call for call in run.calls() if call[0] not in NO_GRADIENTS]
    calls = [call for call in calls if "object" not in call[0] and call[2] >= 0.9 and call[3] > 0]
    return max(calls, key=lambda call: call[2] * call[3], default=None)


def _of_gradients(run, single, gradients, share):
    """The cause that the exchange of the gradients is, which takes this share of a step."""
    report = run.ranks[0]
    often = report["exchanging"] / report["measured"]
    rows = run.rows / run.k * report["measured"] / max(1, report["measured_backwards"])
    few = f"A rank has {rows:.0f} rows a pass: too few for what a step costs anyway."
    if often > 1.5:
        sentence = f"Gradients are exchanged {often:.0f} times for one update."
        return Cause(NO_OVERLAP, share * (1 - 1 / often), run.line(BACKWARD), sentence)
    if gradients:
        calls = f"in {gradients[2]:.0f} calls a step"
        sentence = f"Gradients are exchanged after the backward pass, {calls}."
        return Cause(NO_OVERLAP, gradients[4] / run.seconds, gradients[1], sentence)
    if rows <= FEW_ROWS:  # what does not shrink with the rows is lost, too
        lost = 1 - (run.speedup(single) or run.k) / run.k
        return Cause(SMALL_BATCH, max(share, lost), run.line(BACKWARD), few)
    if report["gradient_bytes"] < MUCH:
        return Cause(SMALL_BATCH, share, run.line(BACKWARD), few)
    gradients = f"{_megabytes(report['gradient_bytes'])} of gradients"
    sentence = f"Each step exchanges {gradients}, and the ranks wait for it."
    return Cause(SLOW_EXCHANGE, share, run.line(BACKWARD), sentence)


def _megabytes(size):
    return f"{size / 1e6:.1f} MB"
