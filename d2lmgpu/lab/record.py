"""A record of ``records/`` as JSON, for the browser that draws its runs like those of a lab."""

from pathlib import Path

from d2lmgpu.lab import words
from d2lmgpu.lab.json_values import as_json, finite, text
from d2lmgpu.lab.live import LabRun, Live
from d2lmgpu.lab.wire import row_numbers, run, speedups_of, table_of
from d2lmgpu.records import compare
from d2lmgpu.records.speedup import PAIRS

TRAININGS = {  # what stands in the name of a record -> what was trained
    "scratch-pytorch": "LeNet in PyTorch",
    "scratch-mxnet": "LeNet in MXNet",
    "concise-pytorch": "ResNet-18 in PyTorch",
    "concise-mxnet": "ResNet-18 in MXNet",
    "lab-gluon-mnist": "a small CNN for MNIST in MXNet",
}


def recorded(record, stem="") -> dict:
    """The runs of a record as ``wire`` has those of a lab; their ids are those in the record.

    ``stem`` is the name of its file, without it the chapter that its command names. Raises RunError
    for numbers that are none.
    """
    trials = compare.recorded(record)
    rows = compare.rows(trials, pairs=PAIRS)
    row_of = row_numbers(rows)
    runs = []
    for trial, about in zip(trials, record.get("runs", ()), strict=True):
        live = Live(trial.num_epochs, finite(about.get("modelled_samples_per_second")))
        live.sharing, settings = trial.sharing, as_json(vars(trial))
        runs.append(LabRun(trial.id, settings, live, trial))
    names = words.names([lab_run.settings for lab_run in runs])
    return {
        "name": text(title(stem or stem_of(record), record)),
        "runs": [
            run(lab_run, text(name), row_of[lab_run.id])
            for lab_run, name in zip(runs, names, strict=True)
        ],
        "table": table_of(rows),
        "speedups": speedups_of(rows),
        "provenance": text(provenance(record)),
        "command": text(record["command"]),
    }


def provenance(record) -> str:
    """Where the numbers of a record come from, in words; its command makes them again."""
    data = f" Data: {record['data']}." if "data" in record else ""
    return (
        f"{machine(record)}. {record.get('profile', '')}{data} Recorded {record['date']} "
        f"at commit {record['commit'][:10]}; made again by "
    )


def title(stem, record) -> str:
    """A machine and what it ran, in words: ``stem`` is the name of the record's file."""
    known = next((words for name, words in TRAININGS.items() if name in stem), None)
    profile = record.get("profile", "").partition(":")[0].rstrip(".")
    ran = known or stem.replace("-", " ")
    return ", ".join(filter(None, [f"{machine(record)}: {ran}", profile]))


def stem_of(record) -> str:
    """'scratch-pytorch' for the record of that chapter: from its command."""
    path = Path(record["command"].split()[-1] if record["command"].split() else "")
    return "-".join(path.with_suffix("").parts[-2:]) if path.suffix == ".ipynb" else ""


def machine(record) -> str:
    """The devices of a machine in words."""
    about = record["machine"]
    return ", ".join(about["gpus"]) or f"{about['cores']} CPU cores ({about['cpu']})"
