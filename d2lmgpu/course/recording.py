"""Records of chapters: their own ``train`` with several settings, measured and written down."""

import math
import os
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from d2lmgpu.costmodel import forecast
from d2lmgpu.course import chapters, forecasting
from d2lmgpu.data.datasets import fashion_mnist, mnist
from d2lmgpu.machine.devices import VARIABLE, available
from d2lmgpu.machine.environ import variable
from d2lmgpu.machine.others import Others
from d2lmgpu.records import compare, steady, store
from d2lmgpu.records.run import Run
from d2lmgpu.records.speedup import PAIRS
from d2lmgpu.records.store import RecordError

RECIPE = [(1, 256, 0.2, None, 0), (2, 256, 0.2, None, 0)]  # num_gpus, batch_size, lr, epochs, seed
DEVICES = (1, 2, 4)
GRIDS = {  # data, the profile's name for the epochs, the part of them, {batch size: lr}
    "scratch": (fashion_mnist, "lenet_epochs", 1 / 2, {128: 0.1, 256: 0.2, 512: 0.4}),
    "concise": (fashion_mnist, "resnet_epochs", 1 / 2, {128: 0.05, 256: 0.1, 512: 0.2}),
    "lab": (mnist, "mnist_epochs", 1, {64: 0.3, 128: 0.3, 256: 0.3}),  # with 0.6 it diverges
}


def record_chapter(path, folder="records") -> Path:
    """Run a chapter's own ``train`` with several settings and record it.

    The settings are those of `grid`, each with its forecast where there are forecasts of that
    chapter; not in the full profile. Raises RecordError for a notebook that is none of the chapters
    that train, and for a ``train`` that returns no Run.
    """
    part = Path(path).parent.name
    if part not in GRIDS:
        raise RecordError(f"{path}: only chapters in {', '.join(GRIDS)} can be recorded.")
    namespace, train = chapters.load_training(path)
    d2l = namespace["d2l"]
    profile, (kind, count) = d2l.profile(), available(d2l.num_gpus())
    settings, training = grid(part, profile, kind, count), forecast.training_of(path)
    calibrated = training and profile.name != "full"
    measured = forecasting.measure(*training) if calibrated else None
    past_the_cores = variable(VARIABLE, f"cpu:{DEVICES[-1]}") if simulates(kind) else nullcontext()
    stem = "-".join(Path(path).with_suffix("").parts[-2:])
    command = f"D2LMGPU_PROFILE={profile.name} {Path(sys.executable).name} -m d2lmgpu record {path}"
    data = GRIDS[part][0](1, 1)
    record = store.provenance(command)
    record |= {"profile": str(profile), "data": data.standin or data.name, "runs": []}
    with past_the_cores:  # what is simulated was not calibrated
        for num_gpus, batch_size, lr, num_epochs, seed in settings:
            d2l.seed(seed)
            if "init_params" in namespace:  # a network from scratch starts from a global
                namespace["params"] = namespace["init_params"]()
            others = Others()
            run = train(num_gpus, batch_size, lr, num_epochs)
            busy = others.cores()
            if not isinstance(run, Run):
                raise RecordError(f"{path}: {train.__name__} returned {run!r}; a Run is needed.")
            print(run, flush=True)
            simulated = run.sharing == "simulated"
            about = {"seed": seed, "round": None if simulated else seed}
            about["kind"] = "simulated" if simulated else "measured"
            if not simulated:
                about["unsteady"] = steady.unsteady(run.seconds, num_gpus, busy)
            record["runs"].append(asdict(run) | about | modelled(measured, run))
    record["speedups"] = speedups(compare.recorded(record))
    return store.write(folder, f"{stem}-{profile.name}", record)


def speedups(trials) -> list:
    """What a record says of its speedups, the unexplained ones marked as such."""
    table = compare.rows(trials, pairs=PAIRS)
    return [
        {
            "num_gpus": row.trial.num_gpus,
            "batch_size": row.trial.batch_size,
            "lr": row.trial.lr,
            "over": table[row.over - 1].trial.num_gpus,
            "scaling": row.scaling,
            "ratios": list(row.ratios),
            "median": row.speedup,
            "explained": row.explained,
        }
        for row in table
        if row.scaling
    ]


def modelled(measured, run) -> dict:
    """The forecast of a run from what was ``measured`` of its chapter; {} if there can be none."""
    if measured is None:
        return {}
    calibration, work = measured
    if run.num_gpus > calibration.devices == 1:
        return {}  # how several would talk was not measured
    step = forecast.predict(calibration, work, run.num_gpus, run.batch_size).step
    return {"modelled_samples_per_second": step.samples_per_second}


def grid(part, profile, kind, count) -> list:
    """``[(num_gpus, batch_size, lr, num_epochs, seed)]`` for the chapters in ``part``.

    There are ``count`` devices of this ``kind``. In the full profile it is `RECIPE`. Else what is
    measured runs once a round, all numbers of devices in turn, so that what else the machine does
    meets all of them; every other round goes back. The seed is that of the round. What is simulated
    runs once: its times are no evidence.
    """
    _, epochs, share, rates = GRIDS[part]
    num_epochs = math.ceil(share * getattr(profile, epochs))
    measured = [k for k in DEVICES if k <= count]
    runs = [
        (num_gpus, batch_size, lr, num_epochs, seed)
        for batch_size, lr in rates.items()
        for seed in range(PAIRS)
        for num_gpus in (measured[::-1] if seed % 2 else measured)
    ]
    runs += [
        (num_gpus, batch_size, lr, num_epochs, 0)
        for num_gpus in DEVICES[len(measured) :]
        for batch_size, lr in rates.items()
    ]
    if profile.name == "full":
        runs = RECIPE
    return [run for run in runs if run[0] <= count or simulates(kind)]


def simulates(kind) -> bool:
    """Whether CPU devices past the cores may be used: unless the reader has chosen the devices."""
    return kind == "cpu" and os.environ.get(VARIABLE, "") in ("", "auto")
