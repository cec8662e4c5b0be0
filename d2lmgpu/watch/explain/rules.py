"""From what was seen to causes: facts first, then the largest measured share of the step.

Each rule is a function of the run with several devices and the one with one (None where there is
none) that returns ``Cause``s. A fact counts only if its share is large.
"""

from dataclasses import dataclass

from d2lmgpu.watch.explain.parts import CORES, LOCK, THREADS
from d2lmgpu.watch.explain.summary import ISSUE, SMALL

LEAST = 0.15  # of a step: what costs less is not named as the cause
MENTIONED = 0.07  # of a step: what costs less is not told at all
MANY_OPERATIONS, SHORT = 700, 30e-6  # of a step; seconds of an operation that is mostly issuing
FEW_ROWS = 16  # of a rank: less is a small batch
MUCH = 4 * 2**20  # bytes of gradients that are more than a small network has
FEW_BYTES = 0.01  # of the gradients' a step: who sends less sends no gradients
NO_GRADIENTS = ("broadcast", "scatter", "barrier", "monitored_barrier")


@dataclass(frozen=True)
class Cause:
    """``share`` of the step that it costs; ``detail`` are numbers for the sentence."""

    name: str
    share: float
    where: str | None
    detail: dict
    fact: bool = False


def _gradients_by_hand(run):
    """The script's own exchange of gradients: the collective with the most bytes; None with DDP."""
    if run.ranks[0]["ddp"]:
        return None
    calls = [call for call in run.calls() if call[0] not in NO_GRADIENTS]
    calls = [call for call in calls if "object" not in call[0] and call[2] >= 0.9 and call[3] > 0]
    return max(calls, key=lambda call: call[2] * call[3], default=None)


def _exchanges(run):
    """Whether gradients or weights travel, whoever sends them: more than a loss or a count."""
    report = run.ranks[0]
    least = FEW_BYTES * report["gradient_bytes"] * report["measured"]
    return report["ddp"] or report["exchanged"] > least


def data_parallel(run, single):
    report = run.ranks[0]  # alone, with all GPUs to itself, a script may do otherwise
    if report["data_parallel"]:
        yield Cause("data-parallel", 0.5, report["data_parallel"], {"how": "DataParallel"}, True)
    elif run.k == 1 and not report["distributed"]:
        yield Cause("data-parallel", 0.5, run.line("backward"), {"how": "one process"}, True)
    elif run.k > 1 and not _exchanges(run):
        share = 1 - 1 / run.k
        yield Cause("data-parallel", share, run.line("backward"), {"how": "no exchange"}, True)


def whole_data(run, single):
    if run.k == 1 or single is None:
        return
    prints = [rank["prints"] for rank in run.ranks]
    alike = [len(set(of_ranks)) == 1 for of_ranks in zip(*prints)]
    undivided = run.rows_like(single) / run.k > 0.9 * single.rows
    if undivided and alike and sum(alike) > 0.8 * len(alike):
        where = run.line("forward") or run.line("backward")
        yield Cause("whole-data", 1 - 1 / run.k, where, {"how": "same rows"}, True)
        return
    before = {loader["where"]: loader for loader in single.ranks[0]["loaders"]}
    used = [loader for loader in run.ranks[0]["loaders"] if loader["epochs"]]
    for loader in sorted(used, key=lambda loader: -(loader["of"] or 0))[:1]:
        alone = before.get(loader["where"])
        all_used = run.rows / run.k > 0.9 * loader["batch"] if loader["batch"] else undivided
        if all_used and alone and loader["mine"] and loader["mine"] == alone["mine"]:
            detail = {"how": "no sampler", "rows": loader["mine"]}
            yield Cause("whole-data", 1 - 1 / run.k, loader["where"], detail, True)


def shared_core(run, single):
    cores = [rank["cores"] for rank in run.ranks]
    if run.k > 1 and all(cores) and len(set().union(*cores)) < run.k:
        number = len(set().union(*cores))
        where, by = _set_by(run, "cores", CORES)
        detail = {"cores": number, "k": run.k, "by": by}
        yield Cause("shared-core", 1 - number / run.k, where, detail, True)


def _set_by(run, what, variables):
    """(the line that has set it or None, the variable of the environment or None)."""
    report = run.ranks[0]
    name = next((variable for variable in variables if variable in report["environ"]), None)
    by_call = report["set"].get(what)
    if by_call or not name:
        return by_call, None
    return report["set"].get(name), f"{name}={report['environ'][name]}"


def too_many_threads(run, single):
    cores = set().union(*[rank["cores"] or () for rank in run.ranks])
    threads = run.ranks[0]["threads"]
    if cores and threads > 1 and threads * run.k > len(cores):
        share = 1 - len(cores) / (threads * run.k)
        where, by = _set_by(run, "threads", THREADS)
        detail = {"threads": threads, "k": run.k, "cores": len(cores), "by": by}
        yield Cause("threads", share, where, detail, True)


def loader(run, single):
    share = max(run.part(("loading",))) / run.seconds
    where = run.line("loading") or next((x["where"] for x in run.ranks[0]["loaders"]), None)
    workers = next((x["workers"] for x in run.ranks[0]["loaders"] if x["epochs"]), 0)
    yield Cause("loader", share, where, {"workers": workers})


def straggler(run, single):
    if run.k == 1:
        return
    spent = run.part(("loading", "forward", "backward", "update"))
    slowest = spent.index(max(spent))
    share = (max(spent) - sum(spent) / run.k) / run.seconds
    elements = [rank["elements"] / rank["measured"] for rank in run.ranks]
    rows = [rank["rows"] / rank["measured"] for rank in run.ranks]
    detail = {
        "rank": slowest,
        "times": max(spent) / max(1e-9, min(spent)),
        "rows": rows,
        "elements": elements,
    }
    yield Cause("straggler", share, run.line("forward", slowest), detail)


def rank0_work(run, single):
    if run.k == 1:
        return
    first, *others = run.aside()
    line = run.line("evaluating") or run.line("other")
    yield Cause("rank0-work", (first - max(others)) / run.seconds, line, {})


def python(run, single):
    locked = max(run.part((LOCK,))) / run.seconds
    if run.in_threads and run.k > 1:
        yield Cause("python", locked, run.line("forward"), {"how": "devices"})
    busy = sum(rank["python_threads"] for rank in run.ranks)
    python_seconds = sum(
        part[1] for rank in run.ranks for step in rank["steps_told"] for part in step[2].values()
    )
    others = run.ranks[0]["others"]
    where = max(others, key=lambda call: (call[0], call[2]))[1] if others else None
    yield Cause("python", busy / max(1e-9, busy + python_seconds), where, {"how": "beside"})


def host_bound(run, single):
    number = run.ranks[0]["operations"]
    compute = max(run.part(("forward", "backward", "update", "other")))
    if number >= MANY_OPERATIONS and compute / number < SHORT:
        share = min(1.0, number * ISSUE / run.seconds)
        detail = {"operations": number, "microseconds": 1e6 * compute / number}
        yield Cause("host-bound", share, run.line("forward") or run.line("other"), detail)


def slow_dtype(run, single):
    report = run.ranks[0]
    compute = max(run.part(("forward", "backward", "update"))) / run.seconds
    if report["doubles"] > 0.2:
        yield Cause("slow-dtype", compute / 2, run.line("forward"), {"doubles": report["doubles"]})
    elif report["casts"] > 0.2 * report["operations"]:
        share = compute * report["casts"] / report["operations"]
        yield Cause("slow-dtype", share, run.line("forward"), {"casts": report["casts"]})


def exchange(run, single):
    """sync, slow-exchange, no-overlap and small-batch: what is exchanged, when, and how often."""
    if run.k == 1:
        return
    gradients, seconds = _gradients_by_hand(run), run.exchange
    hand = gradients and gradients[:2]
    calls = [call for call in run.calls() if call[:2] != hand]
    small = [c for c in calls if c[2] >= 0.5 and (c[3] <= SMALL or "object" in c[0])]
    if small:
        most = max(small, key=lambda call: call[4])
        share = sum(call[4] for call in small) / run.seconds
        yield Cause("sync", share, most[1], {"kind": most[0], "calls": sum(c[2] for c in small)})
    large = [c for c in calls if c not in small and c[2] >= 0.5]
    if large:
        most = max(large, key=lambda call: call[4])
        share = sum(call[4] for call in large) / run.seconds
        yield Cause("slow-exchange", share, most[1], {"kind": most[0], "bytes": most[2] * most[3]})
    share = max(0.0, seconds - sum(call[4] for call in small + large)) / run.seconds
    report = run.ranks[0]
    often = report["exchanging"] / report["measured"]
    rows = run.rows / run.k * report["measured"] / max(1, report["backwards_told"])
    if often > 1.5:
        detail = {"how": "each backward pass", "often": often}
        yield Cause("no-overlap", share * (1 - 1 / often), run.line("backward"), detail)
    elif gradients:
        detail = {"how": "by hand", "calls": gradients[2]}
        yield Cause("no-overlap", gradients[4] / run.seconds, gradients[1], detail)
    elif rows <= FEW_ROWS:  # what does not shrink with the rows is lost, too
        lost = 1 - (run.speedup(single) or run.k) / run.k
        yield Cause("small-batch", max(share, lost), run.line("backward"), {"rows": rows})
    elif report["gradient_bytes"] < MUCH:
        yield Cause("small-batch", share, run.line("backward"), {"rows": rows})
    else:
        detail = {"kind": "gradients", "bytes": report["gradient_bytes"]}
        yield Cause("slow-exchange", share, run.line("backward"), detail)


FACTS = (data_parallel, whole_data, shared_core, too_many_threads)
MEASURED = (loader, exchange, host_bound, rank0_work, straggler, slow_dtype, python)


def causes(run, single):
    """All causes that cost something, the one to name first; empty for none."""
    facts = [cause for rule in FACTS for cause in rule(run, single) if cause.share >= LEAST]
    costs = (cause for rule in MEASURED for cause in rule(run, single))
    measured = [cause for cause in costs if cause.share >= MENTIONED]
    measured.sort(key=lambda cause: -cause.share)
    return facts + measured


def verdict(run, single):
    """(the cause that costs most or None, the others)."""
    ranked = causes(run, single)
    if ranked and ranked[0].share >= LEAST:
        return ranked[0], ranked[1:]
    return None, ranked
