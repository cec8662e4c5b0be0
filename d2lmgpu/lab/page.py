"""The lab in a built page: recorded runs, drawn by the scripts that draw those of a live lab."""

from html import escape

from d2lmgpu.figures.site import embedded, inlined
from d2lmgpu.lab import scripts
from d2lmgpu.lab.record import machine, recorded
from d2lmgpu.machine.devices import RunError
from d2lmgpu.records import store

NOTE = (
    "In a live notebook this is a lab: it trains with the number of devices and the batch size "
    "that you choose. "
)


def page(stem="", folder=store.FOLDER) -> str:
    """HTML that shows the records in ``folder`` whose chapter's name contains ``stem``.

    Raises RecordError for a file that is no record, and for one whose numbers are none.
    """
    records = []
    for path in sorted(folder.glob("*.json")):
        if stem in path.stem:
            records.append(numbers(path, [record["name"] for record in records]))
    records = sorted((record for record in records if record["runs"]), key=rank)
    if not records:
        return f"<p>{NOTE}No runs have been recorded yet: <code>make record</code> does it.</p>"
    tables = "".join(table(record) for record in records)
    return (
        f"<p>{NOTE}Here it shows recorded runs, of repeats the first.</p>"
        f"{inlined(*scripts.in_package(*scripts.STYLES))}"
        f'<div class="lab-recorded" data-scripts="{" ".join(scripts.IN_BOOK)}">'
        f'<script type="application/json">{embedded(records)}</script>{tables}</div>'
        f"{inlined(*scripts.in_package(*scripts.OF_PAGE))}"
    )


def rank(record) -> tuple[bool, bool, int]:
    """The course's own path first: PyTorch, and its smallest network; then who has most runs."""
    name = record["name"]
    return "PyTorch" not in name, "LeNet" not in name, -len(record["runs"])


def off(runs) -> list:
    """Ids of the runs that are not shown at first: all but one device and two with one batch."""
    pairs = [
        (first["id"], second["id"])
        for first in runs
        for second in runs
        if [run["settings"]["num_gpus"] for run in (first, second)] == [1, 2]
        and first["settings"]["batch_size"] == second["settings"]["batch_size"]
    ]
    shown = pairs[len(pairs) // 2] if pairs else [run["id"] for run in runs[:2]]
    return [run["id"] for run in runs if run["id"] not in shown]


def numbers(path, names) -> dict:
    """What the scripts draw of the record ``path``, under a name that is not in ``names``.

    Of the repeats of a run the first is drawn; the table has them all.
    """
    record = store.read(path)
    try:
        shown = recorded(record, path.stem)
    except RunError as error:
        raise store.RecordError(f"{path}: {error}") from error
    name = f"{shown['name']}, {path.stem}" if shown["name"] in names else shown["name"]
    where, rows = machine(record), set()
    first = [run for run in shown["runs"] if not (run["row"] in rows or rows.add(run["row"]))]
    training = name.removeprefix(f"{where}: ")
    about = {"name": name, "machine": where, "training": training, "hidden": off(first)}
    return shown | about | {"runs": first}


def table(record) -> str:
    """The runs of a record as a plain table, for those without scripts."""
    columns = record["table"]["columns"]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = [[row["cells"][name] for name in columns] for row in record["table"]["rows"]]
    cells = ("".join(f"<td>{escape(text)}</td>" for text in line) for line in lines)
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    provenance = f"{escape(record['provenance'])}<code>{escape(record['command'])}</code>."
    return (
        f'<div class="lab-table"><table><caption>{escape(record["name"])}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div><p>{provenance}</p>"
    )
