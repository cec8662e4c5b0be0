"""The lab in a built page: recorded runs to be looked through, without a kernel.

Everything is in the page: pictures and tables are drawn here, a few lines of script show the one
that the reader asks for, and no host is asked. Without scripts the first run of each record shows.
"""

from html import escape

from d2lmgpu import records
from d2lmgpu.explore import select
from d2lmgpu.lab import present, table
from d2lmgpu.lab.curve import curves_svg

SCRIPT = """<script>(() => {
const root = document.currentScript.parentElement;
const [record, devices, batch, rate] = root.querySelectorAll('select');
const figures = [...root.querySelectorAll('figure')];
const show = event => {
  const of = figures.filter(figure => figure.dataset.run.startsWith(record.value + ' '));
  const about = [record, devices, batch].map(field => field.value).join(' ');
  const near = of.filter(figure => figure.dataset.run.startsWith(about + ' '));
  const exact = near.find(figure => figure.dataset.run === about + ' ' + rate.value);
  const nearest = event && event.target === rate ? undefined : near[0];
  const first = event && event.target !== record ? undefined : of[0];
  const chosen = exact || nearest || first;
  if (chosen) [, devices.value, batch.value, rate.value] = chosen.dataset.run.split(' ');
  figures.forEach(figure => { figure.hidden = figure !== chosen; });
  root.querySelector('.lab-none').hidden = chosen !== undefined;
  root.querySelectorAll('.lab-record').forEach(part => { part.hidden = part.dataset.record !== record.value; });
};
root.addEventListener('change', show);
show();
})();</script>"""  # noqa: E501
STYLE = """<style>
.lab-page { overflow-wrap: anywhere }
.lab-controls { display: flex; flex-wrap: wrap; gap: .5em 1em }
.lab-controls label { max-width: 100% }
.lab-page select { display: block; max-width: 100% }
.lab-page figure { margin: 0 }
.lab-page [hidden] { display: none }
</style>"""


def page(stem="", folder=records.FOLDER):
    """HTML that shows the records in ``folder`` whose chapter's name contains ``stem``."""
    found = {path.stem: records.read(path) for path in sorted(folder.glob("*.json"))}
    found = {name: r for name, r in found.items() if stem in name and r.get("runs")}
    found = dict(sorted(found.items(), key=lambda item: -len(item[1]["runs"])))  # the richest first
    note = (
        "In a live notebook this is a lab: it trains with the number of devices and the batch size "
        "that you choose. "
    )
    if not found:
        return f"<p>{note}No runs have been recorded yet: <code>make record</code> does it.</p>"
    parts = [one_record(str(i), record) for i, record in enumerate(found.values())]
    settings = [setting for _, _, settings in parts for setting in settings]
    names = dict(zip(map(str, range(len(found))), map(title, found, found.values())))
    controls = (
        select("Recorded on", names)
        + select("Devices", options(settings, 1))
        + select("Batch size", options(settings, 2))
        + select("Learning rate", options(settings, 3))
    )
    return (
        f'<div class="lab-page">{STYLE}<p>{note}Here it shows recorded runs.</p>'
        f'<div class="lab-controls">{controls}</div>'
        f"{''.join(figures for figures, _, _ in parts)}"
        '<p class="lab-none" role="status" hidden>This run was not recorded: choose another one '
        "from the table.</p>"
        f"{''.join(tables for _, tables, _ in parts)}{SCRIPT}</div>"
    )


def one_record(number, record):
    """``(figures, table, settings)`` of a record; settings are (record, devices, batch, lr)."""
    runs = [as_run(run) for run in record["runs"]]
    rows = table.rows(runs)
    settings = [(number, str(r.num_gpus), str(r.batch_size), f"{r.lr:g}") for r in runs]
    figures = {}
    for setting, run, recorded in zip(settings, runs, record["runs"]):
        modelled = recorded.get("modelled_samples_per_second")
        row = next(row for row in rows if row.run.settings == run.settings)
        hidden = "hidden" if figures or number != "0" else ""
        figures.setdefault(
            setting,
            f'<figure data-run="{escape(" ".join(setting))}" {hidden}>{picture(run, modelled)}'
            f"<figcaption>{escape(sentence(row, modelled))}</figcaption></figure>",
        )
    data = f" Data: {record['data']}." if "data" in record else ""
    provenance = (
        f"{title('', record)}. {record.get('profile', '')}{data} Recorded {record['date']} "
        f"at commit {record['commit'][:10]}; made again by "
    )
    hidden = "" if number == "0" else "hidden"
    tables = (
        f'<div class="lab-record" data-record="{number}" {hidden}>{present.table(rows)}'
        f"<p>{escape(provenance)}<code>{escape(record['command'])}</code>.</p></div>"
    )
    return "".join(figures.values()), tables, settings


def as_run(run):
    """A recorded run as the lab's own."""
    return table.Run(
        train=run.get("train", ""),
        version=run.get("version", ""),
        num_gpus=run["num_gpus"],
        batch_size=run["batch_size"],
        lr=run["lr"],
        num_epochs=len(run["seconds"]),
        overlap=run["overlap"],
        status="finished",
        started="",
        message="",
        **table.numbers(run["num_samples"], run["accuracies"], run["seconds"]),
    )


def picture(run, modelled):
    """Accuracy and speed by epoch, and how fast the run was modelled to be, if it was."""
    epochs = list(range(1, len(run.seconds) + 1))
    speeds = [run.num_samples / seconds for seconds in run.seconds]
    timing = present.TIMING[run.overlap]
    speed = f"samples/s ({timing})"
    curves = {"test accuracy": (epochs, list(run.accuracies)), speed: (epochs, speeds)}
    forecast = {speed: modelled} if modelled else {}
    return curves_svg(curves, "epoch", dots=True, modelled=forecast)


def sentence(row, modelled):
    """What a row says, for those who do not look at the picture."""
    run, speed = row.run, present.spread(row.samples_per_second, present.number)
    devices = "1 device" if run.num_gpus == 1 else f"{run.num_gpus} devices"
    said = f"{devices}, batch {run.batch_size}, lr {run.lr:g}: {speed} samples/s"
    if run.overlap == "simulated":
        said += " (simulated: the time says nothing about speedup)"
    else:
        said += " (measured)"
        if row.speedup != 1:
            said += f", {row.speedup:.2f} times the baseline in the table"
    if modelled:
        said += f"; {present.number(modelled)} had been modelled"
    accuracy = present.spread(row.accuracy, lambda x: f"{x:.3f}")
    return f"{said}, test accuracy {accuracy} after {run.num_epochs} epochs."


def title(name, record):
    """A machine and what it ran, in words."""
    machine = record["machine"]
    gpus = ", ".join(machine["gpus"])
    where = gpus or f"{machine['cores']} CPU cores ({machine['cpu']})"
    return f"{name.replace('-', ' ')}: {where}" if name else where


def options(settings, i):
    """The values of one setting, each once, in their own order."""
    return {value: value for value in sorted({s[i] for s in settings}, key=float)}
