"""The lab's results as HTML: the table of runs, and how far the present one is."""

import base64
from html import escape

from d2lmgpu.lab.curve import number

TIMING = {"simulated": "simulated", "in parallel": "measured", "one device": "measured"}
STYLE = """<style>
.lab-rows { overflow-x: auto }
.lab-rows table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.lab-rows caption { text-align: left; padding: 4px 0 }
.lab-rows th, .lab-rows td { padding: 2px 10px 2px 0; text-align: right; white-space: nowrap }
.lab-rows .word { text-align: left }
.lab-rows thead { border-bottom: 1px solid currentColor }
</style>"""


def devices_note(kind, measured, most):
    """Which numbers of devices are measured and which simulated, in words."""
    if measured is None:
        return "Looking for devices …"
    unit = "GPU" if kind == "gpu" else "CPU core"
    what = f"{measured} {unit}{'s' * (measured != 1)}, each of them a device"
    up_to = "1 device is" if measured == 1 else f"1 to {measured} devices are"
    note = f"This machine: {what}. Runs on {up_to} measured"
    if measured < most:
        note += (
            f"; on {measured + 1} to {most} they are simulated: the arithmetic is exact, the times "
            "say nothing about speedup"
        )
    return note + "."


def hint(num_gpus, measured, most):
    """What the next run will be, in words."""
    if not 1 <= num_gpus <= most:
        return f"The lab has 1 to {most} devices."
    if measured is None:
        return ""
    return f"The next run is {'measured' if num_gpus <= measured else 'simulated'}."


def forecast(found, training):
    """What the next run should take, in words; how to know, where nothing is known of `training`.

    Empty where there can be no forecast.
    """
    if training is None:
        return ""
    if found is None:
        return (
            "No forecast for these settings. Half a minute of measuring gives one: "
            f"python -m d2lmgpu.forecasts {' '.join(training)}"
        )
    step, best = found.step, found.best_num_gpus
    return (
        f"Forecast (modelled, from measurements of this machine): {1000 * step.seconds:.1f} ms a "
        f"step, {number(step.samples_per_second)} samples/s, {step.communication_share:.1%} of the "
        f"step communication. For this batch the step is shortest on {best} "
        f"device{'s' * (best != 1)}."
    )


def progress(live):
    """How far a run is: a bar, the time left, the speed."""
    said = []
    if live.epoch:
        said.append(f"epoch {live.epoch}" + (f" of {live.num_epochs:g}" if live.num_epochs else ""))
    if live.speed:
        timing = TIMING.get(live.overlap, "")
        said.append(f"{number(live.speed)} samples/s ({timing})")
    if live.seconds_left is not None:
        said.append(f"about {live.seconds_left:.0f} s left")
    value = "" if live.progress is None else f'value="{live.progress:.4f}"'
    bar = f'<progress max="1" {value} aria-label="Progress of the run"></progress>'
    return f'{bar} <span class="lab-said">{escape(", ".join(said))}</span>'


def table(rows, files=None, baseline=None):
    """All runs, repeats taken together, without columns that would be empty; empty without any.

    ``files`` maps file names to texts that can be downloaded beneath. ``baseline`` is the number of
    the row that was chosen as baseline, if one was.
    """
    if not rows:
        return ""
    several_trains = len({row.run.train for row in rows}) > 1
    versions = list(dict.fromkeys(row.run.version for row in rows))
    lines = [cells(row, several_trains, versions) for row in rows]
    shown = [name for name in lines[0] if any(line[name] for line in lines)]
    names = "".join(f'<th scope="col">{name}</th>' for name in shown)
    said = "All runs: the median of the repeats, and from the least to the greatest."
    if baseline is not None and not any(row.number == baseline and row.measured for row in rows):
        said += f" Row {baseline} is no measured run, so there is no speedup over it."
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(line[name])}</td>' for name in shown)}</tr>" for line in lines
    )
    return (
        f'{STYLE}<div class="lab-rows" tabindex="0" role="region" aria-label="Table of runs">'
        f"<table><caption>{said}"
        f"</caption><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"
        f"{' '.join(download(*file) for file in (files or {}).items())}</div>"
    )


def download(name, text):
    """A link that saves ``text`` under ``name``; no server is asked."""
    data = base64.b64encode(text.encode()).decode()
    return f'<a download="{name}" href="data:text/plain;base64,{data}">Download {name}</a>'


def cells(row, several_trains, versions):
    """The texts of one row, by column."""
    run = row.run
    finished = run.status == "finished"
    return {
        "Row": str(row.number),
        "Training": run.train if several_trains else "",
        "Code": f"version {versions.index(run.version) + 1}" if len(versions) > 1 else "",
        "Devices": str(run.num_gpus),
        "Batch": f"{run.batch_size:,}",
        "lr": f"{run.lr:g}",
        "Epochs": str(run.num_epochs or "own"),
        "Timing": TIMING.get(run.overlap, "") if finished else run.status,
        "Runs": str(row.repeats),
        "Samples/s": spread(row.samples_per_second, number),
        "Speedup": "" if row.speedup is None else f"{row.speedup:.2f}",
        "Efficiency": "" if row.efficiency is None else f"{row.efficiency:.0%}",
        "s/epoch": spread(row.seconds_per_epoch, lambda x: f"{x:.2f}"),
        "Test accuracy": spread(row.accuracy, lambda x: f"{x:.3f}"),
    }


def spread(values, text):
    """'median (least–greatest)', or the one value there is."""
    if values is None:
        return ""
    if values.low == values.high:
        return text(values.median)
    return f"{text(values.median)} ({text(values.low)}–{text(values.high)})"


def details(text):
    """The log and traceback of a run that failed, folded away."""
    if not text:
        return ""
    return (
        f"<details><summary>What the run printed last</summary><pre>{escape(text)}</pre></details>"
    )
