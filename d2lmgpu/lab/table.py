"""Runs side by side: repeats as median and spread, speedup and efficiency against a baseline."""

import csv
import io
from dataclasses import dataclass
from statistics import median

from d2lmgpu import runs

SETTINGS = ("train", "version", "num_gpus", "batch_size", "lr", "num_epochs", "overlap", "status")
COLUMNS = (*SETTINGS, "samples_per_second", "seconds_per_epoch", "accuracy", "started", "message")


@dataclass
class Run:
    """One run of the lab. Numbers that a run did not give are None.

    ``train`` names the function, ``version`` its code (a hash), ``overlap`` says how the devices
    shared time ('one device', 'in parallel' or 'simulated'), ``started`` when (UTC);
    ``accuracies`` and ``seconds`` have one entry an epoch of ``num_samples`` images.
    """

    train: str
    version: str
    num_gpus: int
    batch_size: int
    lr: float
    num_epochs: int | None
    overlap: str | None
    status: str
    samples_per_second: float | None
    seconds_per_epoch: float | None
    accuracy: float | None
    started: str
    message: str
    num_samples: int | None = None
    accuracies: tuple = ()
    seconds: tuple = ()

    @property
    def settings(self):
        """What two repeats of one run have in common."""
        return tuple(getattr(self, name) for name in SETTINGS)


def numbers(num_samples, accuracies, seconds):
    """What a Run says of the numbers that ``train`` returned, by the rules of ``d2lmgpu.runs``."""
    run = runs.Run(0, 0, 0.0, num_samples, "", accuracies, seconds)
    return {
        "samples_per_second": run.samples_per_second if num_samples and any(seconds) else None,
        "seconds_per_epoch": median(seconds) if seconds else None,
        "accuracy": run.accuracy if accuracies else None,
        "num_samples": num_samples,
        "accuracies": tuple(accuracies),
        "seconds": tuple(seconds),
    }


@dataclass
class Spread:
    """Median, least and greatest of several numbers."""

    median: float
    low: float
    high: float


@dataclass
class Row:
    """All repeats of one run: see ``rows``. ``speedup`` and ``efficiency`` are None where they
    would not be measurements."""

    number: int
    run: Run
    repeats: int
    samples_per_second: Spread | None
    seconds_per_epoch: Spread | None
    accuracy: Spread | None
    speedup: float | None = None
    efficiency: float | None = None

    @property
    def measured(self):
        """Whether the row's times say how fast its number of devices is."""
        return self.samples_per_second is not None and self.run.overlap != "simulated"


def rows(trials, baseline=None):
    """The runs as Rows, repeats taken together, in the order of their first appearance.

    ``baseline`` is the number of the row that speedups refer to; None takes the first measured
    row with the fewest devices; a row that was not measured gives no speedups. Speedup is samples a
    second over the baseline's; efficiency is the speedup per device, again over the baseline's
    number of devices. Simulated devices share cores: their rows have neither.
    """
    groups = {}
    for run in trials:
        groups.setdefault(run.settings, []).append(run)
    table = [
        Row(number, group[0], len(group), *(spread(group, name) for name in COLUMNS[8:11]))
        for number, group in enumerate(groups.values(), 1)
    ]
    reference = base_row(table, baseline)
    for row in table:
        if reference is not None and row.measured:
            row.speedup = row.samples_per_second.median / reference.samples_per_second.median
            row.efficiency = row.speedup * reference.run.num_gpus / row.run.num_gpus
    return table


def base_row(table, baseline=None):
    """The row that speedups refer to, or None."""
    measured = sorted((row for row in table if row.measured), key=lambda row: row.run.num_gpus)
    return next((row for row in measured if baseline in (None, row.number)), None)


def spread(group, name):
    """Spread of what the group's runs gave under ``name``; None if none did."""
    values = [getattr(run, name) for run in group if getattr(run, name) is not None]
    return Spread(median(values), min(values), max(values)) if values else None


def to_csv(trials, baseline=None):
    """One line a run, repeats not taken together, with the speedup of each row's median."""
    of = {row.run.settings: row for row in rows(trials, baseline)}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "timing", "row", "median_speedup", "median_efficiency"])
    for run in trials:
        row = of[run.settings]
        timing = {None: "", "simulated": "simulated"}.get(run.overlap, "measured")
        values = [getattr(run, name) for name in COLUMNS]
        writer.writerow([*values, timing, row.number, row.speedup, row.efficiency])
    return out.getvalue()
