"""What the lab says: of the machine, of the next run, of a run's name, and in its table."""

from collections.abc import Iterator

from d2lmgpu.figures.style import number
from d2lmgpu.records.run import counted

TIMING = {"simulated": "simulated", "in parallel": "measured", "one device": "measured"}
NAMES = {"gpu": "GPU", "cpu": "CPU core"}
NONE = "–"  # there is a time, and nothing that it can be compared with


def devices_note(kind, measured, most) -> str:
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


def hint(num_gpus, measured, most) -> str:
    """What the next run will be, in words."""
    if measured is None or not 1 <= num_gpus <= most:
        return ""
    return f"The next run is {'measured' if num_gpus <= measured else 'simulated'}."


def versions(runs) -> list:
    """The version of the code of each run: of every function they are counted from 1.

    Each of ``runs`` is a dict with train and version, a hash.
    """
    known = {}
    for run in runs:
        of_train = known.setdefault(run["train"], {})
        of_train.setdefault(run["version"], len(of_train) + 1)
    return [known[run["train"]][run["version"]] for run in runs]


def names(runs) -> list:
    """A name for each of several runs, made of those settings that tell them apart.

    Each of ``runs`` is a dict with train, version, num_gpus, batch_size, lr, num_epochs and status.
    Only those that have finished or go on are counted as repeats.
    """
    several = {what: len({run[what] for run in runs}) > 1 for what in ("train", "lr", "num_epochs")}
    numbers = versions(runs)
    repeats, named = {}, []
    for run, version in zip(runs, numbers, strict=True):
        parts = [run["train"]] if several["train"] else []
        parts += [counted(run["num_gpus"], "device"), f"batch {run['batch_size']}"]
        if several["lr"]:
            parts.append(f"lr {run['lr']:g}")
        if several["num_epochs"]:
            epochs = run["num_epochs"]
            parts.append(counted(epochs, "epoch") if epochs else "its own epochs")
        if max(numbers) > 1:
            parts.append(f"version {version}")
        name = ", ".join(parts)
        if run["status"] in ("finished", "running"):
            repeats[name] = repeats.get(name, 0) + 1
        repeat = repeats.get(name, 1)
        named.append(name if repeat == 1 else f"{name}, repeat {repeat}")
    return named


def cells(row, several_trains, code) -> dict:
    """The texts of one row of the table, by column; ``code`` says which version it is."""
    run = row.trial
    speedup = efficiency = NONE if row.measured else ""
    over, unsteady = "", sum(bool(trial.unsteady) for trial in row.trials)
    repeats = str(row.repeats)
    if row.explained:
        speedup = f"{row.speedup:.2f}"
        efficiency = f"{row.efficiency:.0%}" if row.scaling else NONE
        over = f"row {row.over}, {row.scaling}" if row.scaling else "itself"
    if 0 < unsteady < row.repeats:
        repeats = f"{repeats}, {unsteady} unsteady"
    return {
        "Row": str(row.number),
        "Training": run.train if several_trains else "",
        "Code": code,
        "Devices": str(run.num_gpus),
        "Batch": f"{run.batch_size:,}",
        "lr": f"{run.lr:g}",
        "Epochs": str(run.num_epochs or "own"),
        "Timing": TIMING.get(run.sharing, "") if run.status == "finished" else run.status,
        "Runs": repeats,
        "Samples/s": marked(spread(row.samples_per_second, number), row.unsteady, "unsteady"),
        "Speedup": speedup,
        "Efficiency": efficiency,
        "Over": over,
        "s/epoch": spread(row.seconds_per_epoch, lambda x: f"{x:.2f}"),
        "Test accuracy": marked(
            spread(row.accuracy, lambda x: f"{x:.3f}"), run.diverged, "diverged"
        ),
    }


def marked(text, mark, word) -> str:
    """``text`` with a word, where there is such a mark."""
    return ", ".join(filter(None, (text, word if mark else "")))


def table_texts(rows, baseline=None) -> tuple:
    """``(columns, [texts by column of each row], remarks)`` of a table, without empty columns.

    ``baseline`` is the number of the row that the reader has chosen, or None.
    """
    several_trains = len({row.trial.train for row in rows}) > 1
    codes = versions([vars(row.trial) for row in rows])
    codes = [f"version {number}" if max(codes) > 1 else "" for number in codes]
    lines = [cells(row, several_trains, code) for row, code in zip(rows, codes, strict=True)]
    shown = [name for name in (lines[0] if lines else ()) if any(line[name] for line in lines)]
    notes = list(remarks(rows))
    wrong = baseline is not None and not any(r.number == baseline and r.measured for r in rows)
    if lines and wrong:
        notes.append(f"Row {baseline} is no measured run, so there is no speedup over it.")
    return shown, [{name: line[name] for name in shown} for line in lines], notes


def remarks(rows) -> Iterator[str]:
    """Why rows have no speedup, as sentences that name the rows."""
    numbers = {}
    for row in rows:
        if row.remark:
            numbers.setdefault(row.remark, []).append(row.number)
    for remark, of in numbers.items():
        those = f"row {of[0]}" if len(of) == 1 else f"rows {', '.join(map(str, of))}"
        yield f"No speedup in {those}: {remark}."


def spread(values, text) -> str:
    """'median (least–greatest)', or the one value there is."""
    if values is None:
        return ""
    between = f" ({text(values.low)}–{text(values.high)})"
    return text(values.median) + between * (values.low != values.high)
