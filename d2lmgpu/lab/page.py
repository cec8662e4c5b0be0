"""The lab in a built page: an explorer of recorded runs, without a kernel."""

from html import escape

from d2lmgpu.figures.curves import curves_svg
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.style import number
from d2lmgpu.lab import display
from d2lmgpu.lab.recorded import provenance, title
from d2lmgpu.records import compare, store
from d2lmgpu.records.run import RunError, counted
from d2lmgpu.records.speedup import PAIRS

NOTE = (
    "In a live notebook this is a lab: it trains with the number of devices and the batch size "
    "that you choose. "
)
ABSENT = (
    '<p class="lab-none">This run was not recorded: choose another learning rate, or one of the '
    "runs in the table.</p>"
)


def page(stem="", folder=store.FOLDER):
    """HTML that shows the records in ``folder`` whose chapter's name contains ``stem``.

    Raises RecordError for a file that is no record, and for one whose numbers are none.
    """
    records = {}
    for path in sorted(folder.glob("*.json")):
        if stem in path.stem:
            record = store.read(path)
            name = title(path.stem, record)
            if name in records:
                name = f"{name}, {path.stem}"
            try:
                records[name] = answers(record)
            except RunError as error:
                raise store.RecordError(f"{path}: {error}") from error
    names = sorted(filter(records.get, records), key=lambda name: -len(records[name]))
    if not names:
        return f"<p>{NOTE}No runs have been recorded yet: <code>make record</code> does it.</p>"
    settings = [setting for name in names for setting in records[name]]
    devices, batches, rates = (sorted({s[i] for s in settings}) for i in range(3))
    num_gpus, batch_size, lr = next(iter(records[names[0]]))
    explorer = Explorer(
        lambda name, *setting: records[name].get(setting),
        {
            "Recorded on": names,
            "Devices": devices,
            "Batch size": batches,
            "Learning rate": {f"{rate:g}": rate for rate in rates},
        },
        {"Devices": f"{num_gpus:,}", "Batch size": f"{batch_size:,}", "Learning rate": f"{lr:g}"},
        absent=ABSENT,
    )
    return f"<p>{NOTE}Here it shows recorded runs.</p>{explorer._repr_html_()}"


def answers(record):
    """``{(num_gpus, batch_size, lr): HTML}`` for the runs of a record, repeats taken together."""
    trials = compare.recorded(record)
    rows = {row.trial.settings: row for row in compare.rows(trials, pairs=PAIRS)}
    about = f"\n{table(record, list(rows.values()))}"
    found = {}
    for trial, run in zip(trials, record.get("runs", ()), strict=True):
        modelled = run.get("modelled_samples_per_second")
        found.setdefault(
            (trial.num_gpus, trial.batch_size, trial.lr),
            f"<figure>{picture(trial, modelled)}<figcaption>"
            f"{escape(sentence(rows[trial.settings], modelled))}</figcaption></figure>{about}",
        )
    return found


def table(record, rows):
    """All runs of a record, and where they come from."""
    return (  # of a live region only what was chosen is read aloud
        f'<div class="lab-record" aria-live="off">{display.table(rows)}'
        f"<p>{escape(provenance(record))}<code>{escape(record['command'])}</code>.</p></div>"
    )


def picture(trial, modelled):
    """Accuracy and speed by epoch, and how fast the run was modelled to be, if it was."""
    speed = f"samples/s ({display.TIMING.get(trial.sharing, 'measured')})"
    speeds = [(trial.num_samples or 0) / seconds for seconds in trial.seconds if seconds]
    curves = {
        name: (list(range(1, len(values) + 1)), values)
        for name, values in (("test accuracy", list(trial.accuracies)), (speed, speeds))
        if any(values)
    }
    if not curves:
        return ""
    return curves_svg(curves, "epoch", dots=True, modelled={speed: modelled} if modelled else {})


def sentence(row, modelled):
    """What a row says, for those who do not look at the picture."""
    trial, parts = row.trial, []
    if row.samples_per_second is not None:
        timing = "measured" if row.measured else "simulated: the time says nothing about speedup"
        parts.append(f"{display.spread(row.samples_per_second, number)} samples/s ({timing})")
    if row.explained and row.scaling:
        baseline = f"the baseline in row {row.over} ({row.scaling} scaling)"
        parts.append(f"{row.speedup:.2f} times {baseline}")
    if modelled:
        parts.append(f"{number(modelled)} had been modelled")
    if row.accuracy is not None:
        accuracy = display.spread(row.accuracy, lambda x: f"{x:.3f}")
        parts.append(f"test accuracy {accuracy} after {counted(len(trial.accuracies), 'epoch')}")
    about = f"{counted(trial.num_gpus, 'device')}, batch {trial.batch_size}, lr {trial.lr:g}"
    return f"{about}: {', '.join(parts) or 'no numbers were recorded'}."
