"""The lab's state as JSON, for the browser that draws it: dicts, lists, finite numbers, text.

A number that is not known or not finite is None. Seconds of a run count from the call of its
``train``, so the evaluations between the epochs are in them; seconds of a recorded run are those
that its epochs took.
"""

import json

from d2lmgpu.costmodel.forecast import RECORDED_ERRORS
from d2lmgpu.lab import messages, words
from d2lmgpu.lab.cell import cell
from d2lmgpu.lab.functions import CONTROLS, JobError, check_call
from d2lmgpu.lab.json_values import as_json, finite, text
from d2lmgpu.lab.live import SPEED
from d2lmgpu.lab.why import why as why

MOST_POINTS = 150  # of a curve
ACCURACY = "test accuracy"
SAME_LABEL = {"test acc": ACCURACY}  # as D2L writes it
SETTINGS = ("train", "num_gpus", "batch_size", "lr", "num_epochs")


def settings(model) -> messages.Settings:
    """What the reader has chosen."""
    return {
        "train": text(model.train),
        **{name: finite(getattr(model, name)) for name in CONTROLS},
        "scale_lr": model.scale_lr,
    }


def about(model) -> messages.About:
    """What there is to choose from here."""
    try:
        takes_epochs = "num_epochs" in check_call(model.function)
    except JobError:  # its cell has been run again, with another signature: Run says so
        takes_epochs = False
    note = words.devices_note(model.device_kind, model.num_devices, model.most)
    return {
        "trains": [text(name) for name in model.trains],
        "takes_epochs": takes_epochs,
        "most": model.most,
        "kind": model.device_kind,
        "devices": model.num_devices,
        "note": note,
        "cell": text(cell(model)),
    }


def state(model) -> messages.State:
    """Whether a run goes on, what is said of it, and what the next one should give."""
    modelled = model.forecast()
    return {
        "status": model.status,
        "message": text(model.message),
        "details": text(model.details),
        "printed": {"lines": model.printed[0], "text": text(model.printed[1])},
        "wrong": {name: text(words) for name, words in model.wrong.items()},
        "hint": words.hint(model.num_gpus, model.num_devices, model.most),
        "forecast": modelled and forecast(modelled),
        "forecasts": [[k, finite(speedup)] for k, speedup in model.forecasts()],
        "can_measure": model.can_measure,
        "measuring": model.measuring,
    }


def forecast(modelled) -> messages.Forecast:
    """A Forecast with its errors, in shares of the time of a step.

    ``error``: the lowest and the highest of such forecasts on two CPU cores, from records.
    ``fit_error``: how far from a line the measurements were that this one rests on.
    """
    step = modelled.step
    return {
        "samples_per_second": finite(step.samples_per_second),
        "step_seconds": finite(step.seconds),
        "communication_share": finite(step.communication_share),
        "best_num_gpus": modelled.best_num_gpus,
        "error": list(RECORDED_ERRORS),
        "fit_error": finite(modelled.fit_error),
    }


def runs(model) -> list[messages.Run]:
    """All runs that have ended, oldest first."""
    row_of = row_numbers(model.table())
    return [
        run(ended, name, row_of[ended.id])
        for ended, name in zip(model.ended, names(model), strict=False)
    ]


def live(model) -> messages.Live | None:
    """The run that goes on; None without one."""
    if model.present is None:
        return None
    live_run = model.present.live
    return {
        "run": run(model.present, names(model)[-1], None),
        "progress": finite(live_run.progress),
        "epoch": live_run.epoch,
        "num_epochs": finite(live_run.num_epochs),
        "speed": finite(live_run.speed),
        "seconds_left": finite(live_run.seconds_left),
        "lanes": live_run.lanes,
    }


def names(model) -> list[str]:
    """The name of each run, the present one last: the reader's, or one made of its settings."""
    known = [*model.ended, *([model.present] if model.present else [])]
    states = [run.trial.status if run.trial else "running" for run in known]
    about = zip(known, states, strict=True)
    made = words.names([run.settings | {"status": status} for run, status in about])
    return [text(model.names.get(run.id, name)) for run, name in zip(known, made, strict=True)]


def run(lab_run, name, row) -> messages.Run:
    """A ``LabRun``: ``row`` is the number of its row in the table."""
    trial, live_run = lab_run.trial, lab_run.live
    return {
        "id": lab_run.id,
        "name": name,
        "row": row,
        "status": trial.status if trial else "running",
        "timing": words.TIMING.get(live_run.sharing, ""),
        "unsteady": bool(trial and trial.unsteady),
        "diverged": bool(trial and trial.diverged),
        "settings": {what: as_json(lab_run.settings[what]) for what in SETTINGS},
        "curves": curves(live_run, trial),
        "forecast": finite(live_run.modelled.get(SPEED)),
        "where": live_run.where,
        "memory": live_run.memory,
    }


def curves(live_run, trial=None) -> dict[str, list[messages.Point]]:
    """``{label: [[epoch, seconds, samples, value], …]}`` of a run, at most 150 points a curve.

    What ``train`` returned, as ``trial`` has it, is a curve where ``train`` has not drawn it.
    """
    num_samples = (trial and trial.num_samples) or live_run.num_samples
    drawn = {
        text(SAME_LABEL.get(label, label)): [
            [finite(epoch), finite(seconds), samples(epoch, num_samples), finite(value)]
            for _, epoch, seconds, value in thin(points)
        ]
        for label, points in live_run.points.items()
    }
    if trial:
        values = [[point[3] for point in points] for points in drawn.values()]
        for label, curve in returned(trial, num_samples, live_run.epoch_ends).items():
            if label not in drawn and [point[3] for point in curve] not in values:
                drawn[label] = curve
    return drawn


def returned(trial, num_samples, epoch_ends=None) -> dict[str, list[list]]:
    """The curves of a Trial: accuracy and speed of each epoch.

    ``epoch_ends`` maps epochs to seconds; without it, it is the seconds that the epochs took.
    """
    if not epoch_ends:
        epoch_ends, passed = {}, 0.0
        for epoch, seconds in enumerate(trial.seconds, 1):
            epoch_ends[epoch] = passed = passed + seconds
    speeds = [num_samples / s if num_samples and s else None for s in trial.seconds]
    return {
        label: thin(
            [
                [epoch, finite(epoch_ends.get(epoch)), samples(epoch, num_samples), finite(value)]
                for epoch, value in enumerate(values, 1)
            ]
        )
        for label, values in ((ACCURACY, trial.accuracies), (SPEED, speeds))
        if any(value is not None for value in values)
    }


def samples(epoch, num_samples) -> int | None:
    """Training images that had been seen after so many epochs; None if not known."""
    known = finite(epoch), finite(num_samples)
    total = None if None in known else finite(float(known[0]) * known[1])
    return None if total is None else round(total)


def thin(points) -> list:
    """At most ``MOST_POINTS`` of ``points``, evenly; the first and the last are among them.

    While a curve grows, what is shown of it stays: the step between two points only doubles.
    """
    step, last = 1, len(points) - 1
    while last // step + 2 > MOST_POINTS and last + 1 > MOST_POINTS:
        step *= 2
    return points[::step] + ([points[-1]] if last > 0 and last % step else [])


def table(model) -> messages.Table:
    """All runs, repeats taken together, as texts."""
    return table_of(model.table(), model.baseline)


def row_numbers(rows) -> dict:
    """{the id of a run: the number of its row}."""
    return {trial.id: row.number for row in rows for trial in row.trials}


def table_of(rows, baseline=None) -> messages.Table:
    """The ``TableRow``s of a table, each with the ids of its runs."""
    columns, lines, remarks = words.table_texts(rows, baseline)
    return {
        "columns": columns,
        "rows": [
            {
                "row": row.number,
                "runs": [trial.id for trial in row.trials],
                "alone": row.alone,
                "cells": {name: text(cell) for name, cell in line.items()},
            }
            for row, line in zip(rows, lines, strict=True)
        ],
        "remarks": remarks,
        "baseline": baseline,
    }


def speedups(model) -> list[messages.Speedup]:
    """The rows with a speedup that may be shown."""
    return speedups_of(model.table())


def speedups_of(rows) -> list[messages.Speedup]:
    """The rows among ``rows`` that were measured and have an explained speedup.

    ``low`` and ``high``: of the runs that took turns, the least and the greatest ratio; else those
    of any run of the row to any run that it refers to, which has ``over_num_gpus`` devices.
    """
    shown, by_number = [], {row.number: row for row in rows}
    for row in rows:
        if not (row.measured and row.explained):
            continue
        own, base = row.samples_per_second, by_number[row.over].samples_per_second
        ratios = row.ratios
        if len(ratios) == 1 and row.scaling:
            ratios = own.low / base.high, own.high / base.low
        shown.append(
            {
                "row": row.number,
                "num_gpus": row.trial.num_gpus,
                "batch_size": row.trial.batch_size,
                "over_num_gpus": by_number[row.over].trial.num_gpus,
                "median": finite(row.speedup),
                "low": finite(min(ratios)),
                "high": finite(max(ratios)),
            }
        )
    return shown


def files(model) -> dict[str, str]:
    """``{name: text}`` of what can be saved; {} before the first run."""
    if not model.runs:
        return {}
    record = json.dumps(as_json(model.to_record()), indent=1)
    return {"training-lab.csv": text(model.to_csv()), "training-lab-record.json": record}
