"""Recorded runs: what was measured, on which machine, by which command.

A record is one JSON file, ``records/<machine>-<chapter>.json``:

    schema     2
    machine    {"cpu", "cores", "memory_gib", "gpus", "system"}
    versions   {package: version}
    commit     of the repository, with "+" if other files than records had uncommitted changes
    command    that makes the record again
    date       in UTC
    profile    the profile's sentence
    data       the name of the data, or what stood in for them
    runs       [{"num_gpus", "batch_size", "lr", "num_samples", "sharing", "accuracies",
               "seconds", "seed", "kind": "measured" or "simulated",
               "round": runs of the same round took turns; None for a run by itself,
               "unsteady": why its times do not tell how fast it is, see ``steady``; or empty,
               "modelled_samples_per_second": if there was a forecast}]
    speedups   [{"num_gpus", "batch_size", "lr", "over": the number of devices, "scaling",
               "ratios": one a round, "median", "explained": whether it may be shown}]

Schema 1 had neither rounds nor speedups: its runs did not take turns.
"""

import contextlib
import json
import os
import re
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from d2lmgpu.machine import files, hardware
from d2lmgpu.records import shape

PACKAGES = ["d2lmgpu", "torch", "mxnet", "mxnet-cu112", "numpy", "d2l"]
SCHEMA = 2
FOLDER = files.RECORDS  # those of the course


class RecordError(ValueError):
    """A file is not a record."""


def provenance(command: str) -> dict:
    """Everything about a record but its runs."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "schema": SCHEMA,
        "machine": hardware.machine(),
        "versions": versions,
        "commit": commit(),
        "command": command,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def commit() -> str:
    """The commit of this package's repository, with "+" as above; "none" if it is in none."""
    source = Path(__file__)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}

    def git(*args):
        try:
            return subprocess.run(
                ["git", *args],
                cwd=source.parent,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""  # no git here, or no repository

    if not git("ls-files", "--error-unmatch", source.name):
        return "none"
    changed = git("status", "--porcelain", "-uno", "--", ":/", ":(top,exclude)records")
    return git("rev-parse", "HEAD") + "+" * bool(changed)


def name(machine: dict) -> str:
    """A short file name for a machine: its GPUs, else its cores."""
    if machine["gpus"]:
        model = machine["gpus"][0].split(":")[-1]
        return f"{len(machine['gpus'])}x{re.sub(r'[^a-z0-9]+', '-', model.lower()).strip('-')}"
    return f"cpu-{machine['cores']}-cores"


def write(folder, stem: str, record: dict) -> Path:
    """Write ``record`` to ``folder`` under the name of its machine and ``stem``."""
    path = Path(folder) / f"{name(record['machine'])}-{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(path, record)
    return path


def save(path, record: dict) -> None:
    """Write ``record`` to the file ``path``."""
    Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read(path) -> dict:
    """Read a record; RecordError if the file is none, or of a later schema."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        record = json.loads(text, parse_constant=_no_number)
        if fault := shape.wrong(record):
            raise ValueError(fault)
        if record["schema"] not in range(1, SCHEMA + 1):
            raise ValueError(f"its schema is {record['schema']}, not 1 to {SCHEMA}")
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path} is no record of this course: {error}.") from error
    for run in record.get("runs", []):
        if "overlap" in run:  # its name in older records
            run["sharing"] = run.pop("overlap")
    return record


def speeds(record: dict, num_gpus, batch_size) -> list:
    """Training images a second of each run of a record with these settings, by its median epoch."""
    return [
        run["num_samples"] / median(run["seconds"])
        for run in record["runs"]
        if (run["num_gpus"], run["batch_size"]) == (num_gpus, batch_size)
    ]


def _no_number(text):
    raise ValueError(f"{text} is no number that a record can have")


def curves(record: dict, num_gpus, batch_sizes) -> dict:
    """``{"batch 256, lr 0.2": [test accuracies by epoch, of each seed]}`` of a chapter's record."""
    accuracies = {}
    for run in record["runs"]:
        if run["num_gpus"] == num_gpus and run["batch_size"] in batch_sizes:
            setting = f"batch {run['batch_size']}, lr {run['lr']}"
            accuracies.setdefault(setting, []).append(run["accuracies"])
    return accuracies
