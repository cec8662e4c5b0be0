"""Recorded runs: what was measured, on which machine, by which command.

A record is one JSON file, ``records/<machine>-<chapter>.json``:

    schema     1
    machine    {"cpu", "cores", "memory_gib", "gpus", "system"}
    versions   {package: version}
    commit     of the repository, with "+" if other files than records had uncommitted changes
    command    that makes the record again
    date       in UTC
    profile    the profile's sentence
    data       the name of the data, or what stood in for them
    runs       [{"num_gpus", "batch_size", "lr", "num_samples", "overlap", "accuracies",
               "seconds", "seed", "kind": "measured" or "simulated",
               "modelled_samples_per_second": if there was a forecast}]
"""

import json
import math
import os
import platform
import re
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from d2lmgpu import chapters
from d2lmgpu.data import fashion_mnist, mnist
from d2lmgpu.devices import VARIABLE, available, num_cores

PACKAGES = ["d2lmgpu", "torch", "mxnet", "mxnet-cu112", "numpy", "d2l"]
FOLDER = Path(__file__).resolve().parents[1] / "records"  # those of the course
RECIPE = [(1, 256, 0.2, None, 0), (2, 256, 0.2, None, 0)]  # num_gpus, batch_size, lr, epochs, seed
DEVICES = (1, 2, 4)
SEEDS = {2: (0, 1, 2)}  # on two devices, batch sizes are compared over three seeds
TRAININGS = {  # data, the profile's name for the epochs, the part of them, {batch size: lr}
    "scratch": (fashion_mnist, "lenet_epochs", 1 / 2, {128: 0.1, 256: 0.2, 512: 0.4}),
    "concise": (fashion_mnist, "resnet_epochs", 1 / 2, {128: 0.05, 256: 0.1, 512: 0.2}),
    "lab": (mnist, "mnist_epochs", 1, {64: 0.3, 128: 0.3, 256: 0.3}),  # with 0.6 it diverges
}


class RecordError(ValueError):
    """A file is not a record."""


def machine() -> dict:
    """This machine in words and numbers, without its name or any path."""
    from d2lmgpu.doctor import installed_gpus

    return {
        "cpu": cpu_model(),
        "cores": num_cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "gpus": installed_gpus(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def cpu_model() -> str:
    """The CPU as it names itself."""
    try:
        return re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def provenance(command: str) -> dict:
    """Everything about a record but its runs."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "schema": 1,
        "machine": machine(),
        "versions": versions,
        "commit": _commit(),
        "command": command,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _commit():
    def git(*args):
        try:
            done = subprocess.run(["git", *args], capture_output=True, text=True)
        except OSError:
            return ""  # no git here
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "-uno", "--", ".", ":!records")
    return git("rev-parse", "HEAD") + "+" * bool(changed) or "none"


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
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def read(path) -> dict:
    """Read a record; RecordError if the file is none of this schema."""
    try:
        record = json.loads(Path(path).read_text())
        complete = record["schema"] == 1 and {"machine", "versions", "commit", "command"} <= set(
            record
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} is no record of this course: {error!r}.") from error
    if not complete:
        raise RecordError(f"{path}: schema 1 with machine, versions, commit and command is needed.")
    return record


def curves(record: dict, num_gpus, batch_sizes) -> dict:
    """``{"batch 256, lr 0.2": [test accuracies by epoch, of each seed]}`` of a chapter's record."""
    found = {}
    for run in record["runs"]:
        if run["num_gpus"] == num_gpus and run["batch_size"] in batch_sizes:
            setting = f"batch {run['batch_size']}, lr {run['lr']}"
            found.setdefault(setting, []).append(run["accuracies"])
    return found


def record_chapter(path, folder="records") -> Path:
    """Run a chapter's own ``train`` with several settings and record it.

    In the full profile (see ``D2LMGPU_PROFILE``) these are `RECIPE`, in the others `grid`, each
    with its forecast where there are forecasts of that chapter. Raises RecordError for a notebook
    that is none of the chapters that train.
    """
    part = Path(path).parent.name
    if part not in TRAININGS:
        raise RecordError(f"{path}: only chapters in {', '.join(TRAININGS)} can be recorded.")
    namespace = chapters.load(path)
    d2l, train = namespace["d2l"], namespace.get("train") or namespace["run"]
    profile, (kind, count) = d2l.profile(), available(d2l.num_gpus())
    runs, forecast = to_be_had(RECIPE, kind, count), lambda *settings: {}
    if profile.name != "full":
        runs, forecast = grid(part, profile, kind, count), forecasts_of(path)
    if kind == "cpu" and not chosen():
        # After calibrating: devices past the cores are simulated, and say so.
        os.environ[VARIABLE] = f"cpu:{DEVICES[-1]}"
    stem = "-".join(Path(path).with_suffix("").parts[-2:])
    command = f"D2LMGPU_PROFILE={profile.name} {Path(sys.executable).name} -m d2lmgpu record {path}"
    data = TRAININGS[part][0](1, 1)
    record = provenance(command) | {"profile": str(profile), "data": data.standin or data.name}
    record["runs"] = []
    for num_gpus, batch_size, lr, num_epochs, seed in runs:
        d2l.seed(seed)
        if "init_params" in namespace:  # a network from scratch starts from a global
            namespace["params"] = namespace["init_params"]()
        run = train(num_gpus, batch_size, lr, num_epochs)
        print(run, flush=True)
        kind = "simulated" if run.overlap == "simulated" else "measured"
        about = {"seed": seed, "kind": kind} | forecast(num_gpus, batch_size)
        record["runs"].append(asdict(run) | about)
    return write(folder, f"{stem}-{profile.name}", record)


def forecasts_of(path):
    """Measure what the forecasts of a chapter rest on; a function from settings to what is said.

    That is ``{"modelled_samples_per_second": …}``, or nothing if there are none of this chapter.
    """
    from d2lmgpu import forecasts

    training = forecasts.training_of(path)
    if training is None:
        return lambda num_gpus, batch_size: {}
    calibration, work = forecasts.measure(*training)

    def forecast(num_gpus, batch_size):
        if num_gpus > calibration.devices == 1:
            return {}  # how several would talk was not measured
        found = forecasts.predict(calibration, work, num_gpus, batch_size)
        return {"modelled_samples_per_second": found.step.samples_per_second}

    return forecast


def grid(part, profile, kind, count) -> list:
    """``[(num_gpus, batch_size, lr, num_epochs, seed)]`` for the chapters in ``part``.

    There are ``count`` devices of this ``kind``.
    """
    _, epochs, share, rates = TRAININGS[part]
    num_epochs = math.ceil(share * getattr(profile, epochs))
    runs = [
        (num_gpus, batch_size, lr, num_epochs, seed)
        for num_gpus in DEVICES
        for batch_size, lr in rates.items()
        for seed in SEEDS.get(num_gpus, (0,))
    ]
    return to_be_had(runs, kind, count)


def to_be_had(runs, kind, count) -> list:
    """Those ``runs`` whose devices there are; CPU devices past the cores, too, unless chosen."""
    simulated = kind == "cpu" and not chosen()
    return [run for run in runs if run[0] <= count or simulated]


def chosen() -> bool:
    """Whether the reader has chosen the devices."""
    return os.environ.get(VARIABLE, "auto") != "auto"
