"""``check``: run a script with k processes and with one on the same rows, and compare them."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check import by_facts, rules, words
from d2lmgpu.watch.check.evidence import Evidence, distance
from d2lmgpu.watch.run import Limits, check_devices, check_script, run, source_of

OBSERVER = "d2lmgpu.watch.check.observer"
LIMITS = Limits(steps=36)
COMPARED = 12  # updates: later ones differ by rounding that has grown
LEAVE_EQUAL = {"none", "sampler", "buffers", "same-seed"}  # defects that may leave weights equal
SAME = {True: 1e-6, False: 1e-2}  # double or not: weights that are this near, relative to their way
SPAWNS = re.compile(r"\b(spawn|start_processes|notebook_launcher|elastic_launch)\(|\.Process\(")


@dataclass(frozen=True)
class Verdict:
    """What ``check`` found.

    equal: whether the weights of k processes are those of one. difference: between them, relative
    to the way that they have gone; without a comparable run, of the gradients. defect: a name
    in ``words.MENDS``, "none", or "unknown" where something differs and no rule says what. where:
    "file:line" or None. detail and notes: words.
    """

    equal: bool
    difference: float
    defect: str
    where: str | None
    detail: str
    notes: list[str]
    updates: int
    devices: int
    double: bool

    def json(self):
        return {name: getattr(self, name) for name in ("equal", "difference", "defect", "where")}


def check(script, arguments=(), devices=2, limits=LIMITS, unprotected=False) -> Verdict:
    """Is the training of ``script`` with ``devices`` processes that with one?

    Runs it at least twice, for a few updates each: in float64 (option ``double`` of the observer)
    and with epochs cut short (``short``), if it lets us. ``unprotected``: also where your files
    cannot be protected from it. Raises WatchError, in words, for a script that cannot be compared.
    """
    path = check_script(script)
    devices = check_devices(devices)
    if devices < 2:
        raise WatchError(f"devices={devices}: one device has nothing to be compared with. Give 2.")
    spawns = bool(SPAWNS.search(source_of(path)))
    processes = 1 if spawns else devices

    def runs(number, options):
        return run(path, arguments, number, OBSERVER, options, limits, unprotected=unprotected)

    options = {"double": True, "short": True, "devices": devices}
    while True:
        many = runs(processes, options)
        raised = [r["error"]["text"] for r in many.reports if r["end"] == "raised"]
        if options["short"] and any("StopIteration" in text for text in raised):
            options["short"] = False  # the script counts its batches by itself
        elif options["double"] and raised:
            options["double"] = False  # of another type, most often; else it will raise again
        else:
            break
    _must_train(many, processes)
    evidence = Evidence(many)
    one = None
    if evidence.grouped and not spawns:
        one = _replayed(lambda replay: runs(1, options | {"replay": replay}), evidence, many)
    return _verdict(evidence, one, many, spawns)


def _must_train(watched, processes):
    if any(report["end"] == "sharded" for report in watched.reports):
        raise WatchError("The script shards its parameters (FSDP): check compares whole ones only.")
    if len(watched.reports) < processes:
        silent = "Not all processes of the script told what they did."
        raise WatchError(watched.told if watched.trouble else silent)
    trained = [report for report in watched.reports if report.get("updates")]
    if len(trained) < len(watched.reports) or not trained:
        if any(report["backwards"] and not report["optimizer"] for report in watched.reports):
            raise WatchError(
                "The script updates its weights without an optimizer of torch.optim: what it does "
                "with its gradients cannot be seen. Use torch.optim.SGD for the check."
            )
        silent = f"Not all processes of the script have trained. Its last line: {watched.last_line}"
        raise WatchError(watched.told if watched.trouble else silent)


def _replayed(run_one, evidence, many):
    """The run with one process on the rows of all, or None if it does not train."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in many.files.items():
            Path(folder, name).write_bytes(data)
        if "kept-start-0" not in many.files:
            return None
        rates = [update["lr"] for update in evidence.first["updates"]]
        alone = run_one({"folder": folder, "ranks": evidence.world, "lr": rates})
    if not alone.reports or not alone.reports[0].get("updates"):
        return None
    single = Evidence(alone)
    if not single.first["started"]:
        return None
    report, rows = single.first, single.rows(0)
    difference = _difference(evidence, single)
    near = difference is not None and difference < SAME[evidence.double]
    found = {"difference": difference, "near": near, "evidence": single}
    found["comparable"] = near or (difference is not None and report["replayed"] > 0)
    return report | found | {"own_rows": rows and rows * report["share"]}


def _verdict(evidence, one, many, spawns):
    defect, where, detail = rules.defect(evidence, one)
    notes = words.notes(evidence, one, many, spawns)
    if many.note:
        notes.append(many.note)
    apart = any((evidence.apart("before", t) > evidence.eps).any() for t in range(evidence.steps))
    wrong = max(evidence.errors[:COMPARED], default=0.0)
    comparable = one and one["comparable"]
    if not comparable:
        notes.append(words.NOT_REPLAYED)
    difference = one["difference"] if comparable else wrong
    near = one["near"] if comparable else wrong < 10 * evidence.eps
    equal = evidence.grouped and not apart and near and defect in LEAVE_EQUAL
    if near and not equal:  # one process has the defect, too, or was given the rates of k
        grown, batch = by_facts.growth(evidence, one) or (1, 1)
        difference = max(difference, wrong, grown / batch - 1)
    drawn = {"batch norm", "noise", "dropout"} & {n for r in evidence.ranks for n in r["notes"]}
    if defect == "none" and not equal and not (comparable and drawn):
        defect, detail = "unknown", "the weights differ, and no rule says why"
    return Verdict(bool(equal), float(difference), defect, where, detail, notes,
                   evidence.steps, evidence.world, evidence.double)  # fmt: skip


def _difference(many, one):
    """How far rank 0's weights are from those of one process, relative to the way of these."""
    steps = min(many.steps, one.steps, COMPARED)
    if many.sizes != one.sizes or not steps:
        return None
    if any(len(many.passes(t)[0]) != len(one.passes(t)[0]) for t in range(steps)):
        return None
    if any(many.rows(t) != one.rows(t) for t in range(steps)):
        return None
    last = ("before", steps - 1) if steps > 1 else ("after", 0)  # some average after an update
    start = one.every("before", 0)[0]
    way = np.linalg.norm(one.every(*last)[0] - start)
    ends = [e.every(*last)[0] for e in (many, one)]
    return float(np.linalg.norm(ends[0] - ends[1]) / way) if way else distance(*ends)
