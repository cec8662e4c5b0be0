"""``check``: run a script with k processes and with one on the same rows, and compare them."""

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.records.run import counted
from d2lmgpu.watch import MisuseError, WatchError
from d2lmgpu.watch.check import by_facts, by_parts, rules, words
from d2lmgpu.watch.check.comparison import Comparison
from d2lmgpu.watch.check.evidence import Evidence
from d2lmgpu.watch.github import annotation
from d2lmgpu.watch.progress import Progress
from d2lmgpu.watch.run import Limits, check_devices, check_script, run, source_of
from d2lmgpu.watch.template import Template

OBSERVER = "d2lmgpu.watch.check.observer"
LIMITS = Limits(steps=36)
# they may, at least:
LEAVE_EQUAL = {
    "none",
    "sampler",
    "buffers",
    "evaluation",
    "same-seed",
    "nothing-learned",
    "plan",
}
SCHEMA_VERSION = 1  # of schema.json, which says what `as_dict` gives
OUTCOMES = {"same": 0, "different": 1, "not compared": 2}  # and the exit codes of the command
# of these a run with one process on the same rows says more:
UNSEEN = {"none", "evaluation", "same-seed"}
LEAST = 3  # updates of a slow script from which on it is said that it trains as one device does
# errors that float64 does not cause:
NOT_OF_FLOAT64 = (
    "FileNotFoundError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "PermissionError",
    "ZeroDivisionError",
)
# and of these those whose text speaks of no type of numbers
OF_VALUES = ("AttributeError", "KeyError", "ValueError")
TYPES = re.compile("type|float|double|half|precision", re.IGNORECASE)
SPAWNS = re.compile(r"\b(spawn|start_processes|notebook_launcher|elastic_launch)\(|\.Process\(")


@dataclass(frozen=True)
class Verdict:
    """What ``check`` found.

    Attributes
    ----------
    equal : bool or None
        Whether the weights of k processes are those of one; None if that could not be compared.
    difference : float or None
        Between them, relative to the way that they have gone; without a comparable run that of the
        used gradients from the right ones, by their rows.
    defect : str
        A name in ``words.MENDS``, "none", or "unknown" where something differs and no rule says
        what.
    where : str or None
        ``file:line``.
    detail : str
    notes : list of str
    updates : int
    devices : int
    double : bool
        Whether it ran in float64.
    reason : str or None
        Why it could not be compared, and what would make it comparable.
    """

    equal: bool | None
    difference: float | None
    defect: str
    where: str | None
    detail: str
    notes: list[str]
    updates: int
    devices: int
    double: bool
    reason: str | None = None

    @classmethod
    def refused(cls, reason, devices):
        """Of a script that does not train, or not where it could be watched."""
        return cls(None, None, "none", None, "", [], 0, devices, True, reason)

    @property
    def outcome(self) -> str:
        """One of ``OUTCOMES``: "same" is said only after a run with one device on the same rows."""
        if self.defect != "none":
            return "different"
        return "same" if self.equal else "not compared"

    def as_dict(self) -> dict:
        """For ``--json``, as ``schema.json`` beside this file has it."""
        names = ("outcome", "equal", "difference", "defect", "detail", "where", "reason")
        more = ("notes", "devices", "updates")
        answer = {name: getattr(self, name) for name in (*names, *more)}
        mend = words.MENDS.get(self.defect)
        return {"schema_version": SCHEMA_VERSION, "command": "check", **answer, "mend": mend}

    def annotations(self, script) -> list[str]:
        """For ``--github``: of a defect an error at its line, of no comparison a warning."""
        if self.outcome == "same":
            return []
        level, message = "error", f"{self.detail}\n{words.MENDS.get(self.defect, '')}".strip()
        title = f"d2lmgpu check: {self.defect}"
        if self.outcome == "not compared":
            level, title, message = "warning", "d2lmgpu check: not compared", self.reason
        return [annotation(level, title, message, script, self.where)]


def check(
    script, arguments=(), devices=2, limits=LIMITS, unprotected=False, progress=None
) -> Verdict:
    """Is the training of a script with several processes that with one?

    Runs it at least twice, for a few updates each: in float64 (option ``double`` of the observer)
    and with epochs cut short (``short``), if it lets us. The run with one process is given what
    ``comparison`` needs, by the option ``replay``.

    Parameters
    ----------
    script : str or Path
    arguments : list of str
        Of the script's command line.
    devices : int
        Processes, from 2 to the number of CPU cores. On one core two take turns, which changes no
        result.
    limits : Limits
        Of each run.
    unprotected : bool
        Also where your files cannot be protected from the script.
    progress : bool, optional
        Whether stderr says what is being run; without it, where stderr is a terminal.

    Returns
    -------
    Verdict

    Raises
    ------
    WatchError
        For a script that cannot be compared, in words.
    MisuseError
        For a script, or devices, that are not there.
    """
    path = check_script(script)
    devices = check_devices(devices, least=2)
    if devices < 2:
        raise MisuseError(f"devices={devices}: one device has nothing to be compared with. Give 2.")
    with Template() as template:
        further = {"unprotected": unprotected, "progress": Progress(progress, expected=2)}
        return _checked(path, arguments, devices, limits, further | {"template": template})


def _checked(path, arguments, devices, limits, further):
    options = {"double": True, "short": True, "devices": devices}

    def runs(number, options):
        # One process has the cores of all: it computes what all of them have.
        threads = os.environ.get("OMP_NUM_THREADS", str(devices // options["devices"]))
        environ = {"OMP_NUM_THREADS": threads}

        def watch(options):
            return run(path, arguments, number, OBSERVER, options, limits, environ, **further)

        watched = watch(options)
        if options["devices"] < devices and _wants_gpus(watched):
            watched = watch(options | {"gpus": devices})
        return watched

    many, processes = _on_all(runs, path, devices, options)
    alone = options | {"devices": 1}
    if any(report["end"] == "sharded" for report in many.reports):
        return _in_parts(runs, processes, options)
    _must_train(many, processes)
    evidence = Evidence(many)
    single = _with_whole_weights(runs, alone, evidence)
    if single:
        return _in_parts(runs, processes, options, single)
    if evidence.parted:
        raise WatchError(words.PARTED)
    if not evidence.grouped:
        if any(report["joins"] for report in many.reports):
            raise WatchError(words.NO_GROUP)
        return _verdict(evidence, None, many, None)

    def run_single(replay):
        return runs(1, alone | {"replay": replay})

    comparison, reason = _with_single(run_single, evidence, many)
    return _verdict(evidence, comparison, many, reason)


def _on_all(runs, path, devices, options):
    """The run on all devices, and in how many processes: in one if the script spawns others."""
    if SPAWNS.search(source_of(path)):
        many = _run_many(runs, 1, options)
        if many.trouble or any(report["spawned"] for report in many.reports):
            return many, 1  # else it spawns none with these arguments
    return _run_many(runs, devices, options), devices


def _with_whole_weights(runs, alone, evidence):
    """The run of one process if the ranks, which have the same rows, cut its weights; or None."""
    if not (evidence.grouped and by_parts.same_rows([rank["inputs"] for rank in evidence.ranks])):
        return None
    single = runs(1, alone | {"parts": True})
    if not single.trouble and by_parts.is_cut(evidence.shapes, single.reports[0]["shapes"]):
        return single
    if single.trouble and (evidence.parted or evidence.apart("before", 0).any()):
        raise WatchError(_one_failed(single))
    return None


def _run_many(runs, processes, options):
    """The run with several processes; ``options`` are changed to those that the script bears."""
    while True:
        many = runs(processes, options)
        raised = [r["error"]["text"] for r in many.reports if r["end"] == "raised"]
        if many.hang and many.hang.rule == "raised":
            raised.append(many.hang.cause)
        elif many.hang:
            return many
        if options["short"] and any("StopIteration" in text for text in raised):
            options["short"] = False  # the script counts its batches by itself
        elif raised and options["double"] and all(map(_may_be_of_float64, raised)):
            options["double"] = False  # else it will raise again
        else:
            return many


def _may_be_of_float64(text):
    if any(name in text for name in OF_VALUES) and not TYPES.search(text):
        return False
    return not any(name in text for name in NOT_OF_FLOAT64)


def _wants_gpus(watched):
    """Whether a script may not have trained because fewer GPUs are there than it wants."""
    reports = watched.reports
    ended = all(report["end"] != "wall" and not report["steps"] for report in reports)
    return ended and any(report.get("cuda") for report in reports)


def _one_failed(alone):
    return words.ONE_FAILED.format(alone.explanation if alone.trouble else "no update")


def _must_train(watched, processes):
    if len(watched.reports) < processes:
        silent = "Not all processes of the script told what they did."
        raise WatchError(watched.explanation if watched.trouble else silent)
    trained = [report for report in watched.reports if report.get("updates")]
    if len(trained) < len(watched.reports) or not trained:
        if any(report["backwards"] and not report["optimizer"] for report in watched.reports):
            raise WatchError(
                "The script updates its weights without an optimizer of torch.optim: what it does "
                "with its gradients cannot be seen. Use torch.optim.SGD for the check."
            )
        silent = f"Not all processes of the script have trained. Its last line: {watched.last_line}"
        raise WatchError(watched.explanation if watched.trouble else silent)


def _in_parts(runs, processes, options, single=None):
    """The ``Verdict`` on a network of which each rank holds parts, see ``by_parts``.

    single: the run with one process, where there has been one.
    """
    options = options | {"parts": True}
    many = _run_many(runs, processes, options)
    _must_train(many, processes)
    held = by_parts.Held(many)
    if held.same_rows is False:
        raise WatchError(words.SHARDED)
    single = single or runs(1, options | {"devices": 1})
    if single.trouble or not single.reports[0].get("updates"):
        raise WatchError(_one_failed(single))
    alone = by_parts.Held(single)
    try:
        finding = by_parts.compare(held, alone)
    except by_parts.NotComparedError as error:
        raise WatchError(str(error)) from None
    notes = [note for note in (many.note, many.trouble) if note]
    drawn = by_parts.drawn(held, alone)
    if not finding.equal and (drawn or single.reports[0]["forced"]):
        raise WatchError(drawn or words.SPAWNS)
    lines = held.ranks[0]["lines"]
    where = None if finding.defect == "none" else lines.get("backward")
    return Verdict(
        finding.equal,
        finding.difference,
        finding.defect,
        where,
        finding.detail,
        notes,
        finding.steps,
        len(held.ranks),
        held.double,
    )


def _with_single(run_single, evidence, many):
    """(the ``Comparison`` with one process, why nothing can be told by it): one of them is None.

    What one process is given of the ranks, in turn until it has their rows: the batches of their
    loaders, also what their lines have drawn, neither.
    """
    files, updates = many.files, evidence.first["updates"]
    if "kept-weights-0-0" not in files:
        return None, words.TOO_LARGE
    settings = {"ranks": evidence.world, "lr": [update["lr"] for update in updates]}
    draws, loads = (
        any(name.startswith(f"kept-{what}-") for name in files) for what in ("draws", "batches")
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)

        def compared(loaders, draws):
            alone = run_single(settings | {"folder": folder, "loaders": loaders, "draws": draws})
            if alone.trouble or not alone.reports[0].get("updates"):
                return None, _one_failed(alone)
            single = Evidence(alone)
            if not single.first["taught"] or single.sizes != evidence.sizes:
                return None, words.NOT_TAUGHT
            comparison = Comparison(evidence, single)
            return comparison, None if comparison.compared else words.other_rows(comparison)

        first = latest = compared(True, None)
        # Other rows help neither a net that does not move nor a loss that is divided by a number.
        moves = first[0] is None or (first[0].difference is not None and not first[0].fixed)
        wanted = moves and rules.defect(evidence, first[0])[0] in UNSEEN
        if latest[1] and draws and wanted:
            latest = compared(True, _draws(evidence, first[0]))
        if latest[1] and loads and wanted:
            latest = compared(False, None)
    if latest[1]:
        return first
    if first[0]:
        latest[0].own_rows = first[0].own_rows  # those that it takes if it is given none
    return latest


def _draws(many, comparison):
    """How one process is to be given the ranks' draws: see ``draws``."""
    if comparison is None:
        return "joined"
    drawn, alone = many.first["drawn"], comparison.single.first["drawn"]
    last = min(len(drawn), len(alone)) - 1
    often = alone[last] - alone[0], drawn[last] - drawn[0]
    return "in turn" if often[1] and often[0] == many.world * often[1] else "joined"


def _verdict(evidence, comparison, many, reason):
    defect, where, detail = rules.defect(evidence, comparison)
    notes = words.notes(evidence, comparison, many, defect)
    if many.note:
        notes.append(many.note)
    moves = defect != "nothing-learned"
    apart = moves and any(
        (evidence.apart("before", t) > evidence.eps).any() for t in range(evidence.steps)
    )
    wrong = max(evidence.errors, default=0.0)
    compared = comparison is not None and not reason
    difference = comparison.difference if compared else 0.0
    equal = None
    if defect not in LEAVE_EQUAL or apart or not evidence.grouped:
        equal = False
    elif compared:
        equal = comparison.near
    if not equal and not (compared and not comparison.near):
        # the single process has the defect, too, or the rates of k
        grown, batch = by_facts.growth(evidence, comparison) or (1, 1)
        pace = by_facts.pace(evidence, comparison) or 1
        difference = max(difference, wrong, grown / batch - 1, pace - 1)
    if equal and defect == "none" and evidence.ends_early and evidence.steps < LEAST:
        updates = counted(evidence.steps, "update")
        equal, reason = None, words.TOO_FEW.format(updates=updates)
    drawn = words.drawn(evidence)
    if defect == "none" and equal is False and (apart or not drawn):
        defect, detail = "unknown", "the weights differ, and no rule says why"
    elif defect == "none" and equal is False:
        reason = " ".join(drawn)
    return Verdict(
        equal,
        float(difference),
        defect,
        where,
        detail,
        notes,
        evidence.steps,
        evidence.world,
        evidence.double,
        None if equal else reason,
    )
