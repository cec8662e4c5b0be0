"""The lab's results as HTML: the table of runs, and how far the present one is."""

import base64
from html import escape

from d2lmgpu.costmodel.forecast import RECORDED_ERRORS
from d2lmgpu.figures.site import inlined
from d2lmgpu.figures.style import number
from d2lmgpu.records.run import counted

TIMING = {"simulated": "simulated", "in parallel": "measured", "one device": "measured"}
NAMES = {"gpu": "GPU", "cpu": "CPU core"}


def devices_note(kind, measured, most):
    """Which numbers of devices are measured and which simulated, in words."""
    if measured is None:
        return "Looking for devices …"
    what = "GPUs and CPU cores" if kind == "mixed" else counted(measured, NAMES[kind])
    up_to = "1 device is" if measured == 1 else f"1 to {measured} devices are"
    past = (
        f"; on {measured + 1} to {most} they are simulated: the arithmetic is exact, the times "
        "say nothing about speedup"
    )
    note = f"This machine: {what}, each of them a device. Runs on {up_to} measured"
    return f"{note}{past if measured < most else ''}."


def hint(num_gpus, measured, most):
    """What the next run will be, in words."""
    if not 1 <= num_gpus <= most:
        return f"The lab has 1 to {most} devices."
    if measured is None:
        return ""
    return f"The next run is {'measured' if num_gpus <= measured else 'simulated'}."


def forecast(modelled, training):
    """What the next run should take, or how to know, in words; empty where nobody can know."""
    if training is None:
        return ""
    if modelled is None:
        return (
            "No forecast for these settings. Half a minute of measuring gives one: "
            f"d2lmgpu forecast {' '.join(training)}"
        )
    step = modelled.step
    return (
        f"Forecast (modelled, from measurements of this machine): {1000 * step.seconds:.1f} ms a "
        f"step, {number(step.samples_per_second)} samples/s, {step.communication_share:.1%} of the "
        "step communication. For this batch the step is shortest on "
        f"{counted(modelled.best_num_gpus, 'device')}. "
        "On two CPU cores such step times were off by {:+.0%} to {:+.0%}.".format(*RECORDED_ERRORS)
    )


def progress(live):
    """How far a run is: a bar, the time left, the speed."""
    parts = []
    if live.epoch:
        of = f" of {live.num_epochs:g}" if live.num_epochs else ""
        parts.append(f"epoch {live.epoch}{of}")
    if live.speed:
        parts.append(f"{number(live.speed)} samples/s ({TIMING.get(live.sharing, '')})")
    if live.seconds_left is not None:
        parts.append(f"about {live.seconds_left:.0f} s left")
    value = "" if live.progress is None else f'value="{live.progress:.4f}"'
    bar = f'<progress max="1" {value} aria-label="Progress of the run"></progress>'
    return f'{bar} <span class="lab-said">{escape(", ".join(parts))}</span>'


def table(rows, files=None, baseline=None):
    """All runs, repeats taken together, without columns that would be empty; empty without any.

    ``files`` maps names to texts that can be downloaded beneath; ``baseline`` is the chosen row.
    """
    if not rows:
        return ""
    several_trains = len({row.trial.train for row in rows}) > 1
    versions = list(dict.fromkeys(row.trial.version for row in rows))
    lines = [cells(row, several_trains, versions) for row in rows]
    shown = [name for name in lines[0] if any(line[name] for line in lines)]
    head = "".join(f'<th scope="col">{name}</th>' for name in shown)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(line[name])}</td>' for name in shown)}</tr>" for line in lines
    )
    notes = list(remarks(rows))
    if baseline is not None and not any(row.number == baseline and row.measured for row in rows):
        notes.append(f"Row {baseline} is no measured run, so there is no speedup over it.")
    return (
        f"{inlined('lab/lab.css')}"
        '<div class="lab-rows" tabindex="0" role="region" aria-label="Table of runs">'
        "<table><caption>All runs: the median of the repeats, and from the least to the greatest."
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{' '.join(download(*file) for file in (files or {}).items())}</div>"
        f"{''.join(f'<p>{escape(note)}</p>' for note in notes)}"
    )


def download(name, text):
    """A link that saves ``text`` under ``name``; no server is asked."""
    data = base64.b64encode(text.encode()).decode()
    return f'<a download="{name}" href="data:text/plain;base64,{data}">Download {name}</a>'


def cells(row, several_trains, versions):
    """The texts of one row, by column."""
    run = row.trial
    speedup = efficiency = over = ""
    if row.explained:
        speedup, efficiency = f"{row.speedup:.2f}", f"{row.efficiency:.0%}"
        over = f"row {row.over}, {row.scaling}" if row.scaling else "itself"
    return {
        "Row": str(row.number),
        "Training": run.train if several_trains else "",
        "Code": f"version {versions.index(run.version) + 1}" if len(versions) > 1 else "",
        "Devices": str(run.num_gpus),
        "Batch": f"{run.batch_size:,}",
        "lr": f"{run.lr:g}",
        "Epochs": str(run.num_epochs or "own"),
        "Timing": TIMING.get(run.sharing, "") if run.status == "finished" else run.status,
        "Runs": str(row.repeats),
        "Samples/s": spread(row.samples_per_second, number),
        "Speedup": speedup,
        "Efficiency": efficiency,
        "Over": over,
        "s/epoch": spread(row.seconds_per_epoch, lambda x: f"{x:.2f}"),
        "Test accuracy": spread(row.accuracy, lambda x: f"{x:.3f}"),
    }


def remarks(rows):
    """Why rows have no speedup, as sentences that name the rows."""
    numbers = {}
    for row in rows:
        if row.remark:
            numbers.setdefault(row.remark, []).append(row.number)
    for remark, of in numbers.items():
        those = f"row {of[0]}" if len(of) == 1 else f"rows {', '.join(map(str, of))}"
        yield f"No speedup in {those}: {remark}."


def spread(values, text):
    """'median (least–greatest)', or the one value there is."""
    if values is None:
        return ""
    between = f" ({text(values.low)}–{text(values.high)})"
    return text(values.median) + between * (values.low != values.high)


def details(text):
    """The log and traceback of a run that failed, folded away."""
    summary = "<summary>What the run printed last</summary>"
    return f"<details>{summary}<pre>{escape(text)}</pre></details>" if text else ""
