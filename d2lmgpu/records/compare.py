"""Runs side by side: repeats as median and spread, and how many times as fast they are."""

import csv
import io
import sys
from dataclasses import dataclass
from math import inf
from statistics import median

from d2lmgpu.machine.checks import is_count, is_real, is_whole
from d2lmgpu.machine.devices import RunError
from d2lmgpu.records import steady
from d2lmgpu.records.run import Run, at_least, need
from d2lmgpu.records.speedup import refer, reference

SETTINGS = ("train", "version", "num_gpus", "batch_size", "lr", "num_epochs", "sharing", "status")
NUMBERS = {  # name -> the least that is allowed
    "samples_per_second": sys.float_info.min,
    "seconds_per_epoch": 0,
    "accuracy": -inf,
}
SPEEDS = ("samples_per_second", "seconds_per_epoch")  # which an unsteady run does not tell
COLUMNS = (*SETTINGS, *NUMBERS, "unsteady", "diverged", "started", "message")


@dataclass
class Trial:
    """One run with its settings and how it ended. Numbers that it did not give are None.

    ``train`` names the function, ``version`` its code (a hash), ``sharing`` says how the devices
    shared time, ``started`` when (UTC). In a record, runs of the same ``round`` took turns.
    ``unsteady`` says why its times do not tell how fast it is (see ``steady``), or is empty.
    ``id`` is its number among the runs of its lab or record.

    Raises RunError for numbers that would spoil a table's medians: a speed that is not finite and
    positive, a time that is not finite and not negative, an accuracy that is not finite.
    """

    train: str
    version: str
    num_gpus: int
    batch_size: int
    lr: float
    num_epochs: int | None
    sharing: str | None
    status: str
    samples_per_second: float | None
    seconds_per_epoch: float | None
    accuracy: float | None
    started: str
    message: str
    num_samples: int | None = None
    accuracies: tuple = ()
    seconds: tuple = ()
    round: int | None = None
    unsteady: str = ""
    diverged: bool = False
    id: int | None = None

    def __post_init__(self):
        for name, least in NUMBERS.items():
            value = getattr(self, name)
            need(value is None or is_real(value, least), name, value, at_least(least))

    @property
    def settings(self) -> tuple:
        """What two repeats of one run have in common."""
        return tuple(getattr(self, name) for name in SETTINGS)


def numbers(num_samples, accuracies, seconds) -> dict:
    """What a Trial says of the numbers that ``train`` returned; RunError if they are none."""
    run = Run(0, 0, 0.0, num_samples, "", accuracies, seconds)
    return {
        "samples_per_second": run.samples_per_second,
        "seconds_per_epoch": median(seconds) if seconds else None,
        "accuracy": run.accuracy,
        "num_samples": num_samples,
        "accuracies": tuple(accuracies),
        "seconds": tuple(seconds),
    }


def recorded(record) -> list:
    """The runs of a record as Trials; RunError if numbers of one are none, or settings lack."""
    trials = []
    for number, run in enumerate(record.get("runs", ()), 1):
        try:
            for name in ("num_gpus", "batch_size"):
                need(is_count(run[name]), name, run[name], "a whole number above 0")
            need(is_real(run["lr"]), "lr", run["lr"], "a finite number")
            sharing, turn = run["sharing"], run.get("round")
            need(isinstance(sharing, str | None), "sharing", sharing, "a text, or null")
            need(turn is None or is_whole(turn), "round", turn, "a whole number, or null")
            returned_numbers = numbers(run.get("num_samples"), run["accuracies"], run["seconds"])
            unsteady = run.get("unsteady", steady.of_epochs(returned_numbers["seconds"], sharing))
            need(isinstance(unsteady, str), "unsteady", unsteady, "a text")
            trials.append(
                Trial(
                    run.get("train", ""),
                    run.get("version", ""),
                    run["num_gpus"],
                    run["batch_size"],
                    run["lr"],
                    len(run["seconds"]) or None,
                    sharing,
                    "finished",
                    started="",
                    message="",
                    round=turn,
                    unsteady=unsteady,
                    diverged=run.get("diverged") is True,
                    id=number,
                    **returned_numbers,
                )
            )
        except (AttributeError, KeyError, TypeError, RunError) as error:
            raise RunError(f"run {number} of the record: {error!r}") from error
    return trials


@dataclass
class Spread:
    """Median, least and greatest of several numbers."""

    median: float
    low: float
    high: float


@dataclass
class TableRow:
    """All repeats of one run; ``over`` and what follows are about its speedup.

    over: number of the row that it refers to; None where there is no speedup.
    scaling: 'strong' or 'weak'; None for the row's speedup over itself, which is 1.
    ratios: what it is the median of.
    efficiency: the speedup a device, over the baseline's a device; None over itself.
    remark: why it must not be shown, in words; else empty.
    unsteady: whether none of the runs tells how fast they are.
    """

    number: int
    trials: list
    samples_per_second: Spread | None
    seconds_per_epoch: Spread | None
    accuracy: Spread | None
    over: int | None = None
    scaling: str | None = None
    ratios: tuple = ()
    speedup: float | None = None
    efficiency: float | None = None
    remark: str = ""
    unsteady: bool = False

    @property
    def trial(self) -> Trial:
        """The first repeat, for the settings of all."""
        return self.trials[0]

    @property
    def repeats(self) -> int:
        """How many runs with the same settings the row stands for."""
        return len(self.trials)

    @property
    def measured(self) -> bool:
        """Whether the row's times say how fast its number of devices is."""
        return self.samples_per_second is not None and self.trial.sharing != "simulated"

    @property
    def alone(self) -> bool:
        """Whether the row was measured and there is nothing that it can be compared with."""
        return self.measured and self.over is None and not self.remark

    @property
    def explained(self) -> bool:
        """Whether the speedup may be shown: there is one, and more devices can be its cause."""
        return self.speedup is not None and not self.remark


def rows(trials, baseline=None, pairs=0) -> list:
    """The runs as TableRows, repeats taken together, in the order of their first appearance.

    All speedups refer to the row with the number ``baseline``; with None, each to its own
    ``reference``. A speedup is the ratio of the medians of samples a second. With ``pairs`` it is
    the median of the ratios of runs that took turns, and there must be so many of them: what else
    the machine did met both. Without turns an unsteady run tells no time where a steady repeat
    does, and a row of nothing else explains no speedup. Rows that were not measured have none:
    simulated devices take turns.
    """
    groups = {}
    for trial in trials:
        groups.setdefault(trial.settings, []).append(trial)
    table = []
    for number, group in enumerate(groups.values(), 1):
        unsteady = not pairs and all(run.unsteady for run in group)
        spreads = (spread(group, name, pairs) for name in NUMBERS)
        table.append(TableRow(number, group, *spreads, unsteady=unsteady))
    measured = [row for row in table if row.measured]
    chosen = next((row for row in measured if row.number == baseline), None)
    for row in measured:
        base = reference(row, measured) if baseline is None else chosen
        if base is not None:
            refer(row, base, pairs)
    return table


def spread(group, name, pairs=0) -> Spread | None:
    """Spread of what the group's runs gave under ``name``, see ``rows``; None if none did."""
    if name in SPEEDS and not pairs:
        group = [run for run in group if not run.unsteady] or group
    values = [getattr(run, name) for run in group if getattr(run, name) is not None]
    return Spread(median(values), min(values), max(values)) if values else None


def to_csv(trials, baseline=None) -> str:
    """One line a run, repeats not taken together, with the speedup of each row's median."""
    of = {row.trial.settings: row for row in rows(trials, baseline)}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *COLUMNS,
            "timing",
            "row",
            "median_speedup",
            "median_efficiency",
            "over_row",
            "scaling",
            "remark",
        ]
    )
    for run in trials:
        row = of[run.settings]
        timing = {None: "", "simulated": "simulated"}.get(run.sharing, "measured")
        values = [getattr(run, name) for name in COLUMNS]
        shown = (row.speedup, row.efficiency) if row.explained else (None, None)
        writer.writerow([*values, timing, row.number, *shown, row.over, row.scaling, row.remark])
    return out.getvalue()
