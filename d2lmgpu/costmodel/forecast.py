"""What a training of this course will take on this machine, said before it runs.

A forecast puts together two measurements: of the devices (`measure`), and of a training's own
``train`` on *one* device at a few batch sizes (`short_runs`). What more devices or another batch
will take is modelled. Both are kept in the cache. Reading them needs no framework.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from d2lmgpu import __version__
from d2lmgpu.costmodel import CostError, need
from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.costmodel.model import Step, Work, best_num_gpus, step
from d2lmgpu.machine import devices, profiles
from d2lmgpu.machine.atomic_write import save
from d2lmgpu.machine.cache import cache
from d2lmgpu.machine.hardware import cpu_model
from d2lmgpu.process.settings import version_of

SETTINGS = (profiles.VARIABLE, devices.VARIABLE, "CUDA_VISIBLE_DEVICES")

# How far off forecasts were, of the time of a step: the lowest and the highest error against single
# runs on two CPU cores, all `TRAININGS`, in records/cpu-2-cores-predictions.json.
RECORDED_ERRORS = (-0.34, 0.51)


@dataclass(frozen=True)
class Training:
    """One network in one framework, and how its devices work together.

    Attributes
    ----------
    chapter : str
        Where its ``train`` is taught, folder and name.
    workers : str
        'threads' or 'processes', which drive its devices.
    algorithm : str
        Of the exchange, see ``exchange_seconds``.
    messages : int
        In which the gradients are sent.
    """

    chapter: str
    workers: str
    algorithm: str
    messages: int


TRAININGS = {
    ("lenet", "torch"): Training("scratch/pytorch", "threads", "naive", 8),
    ("lenet", "mxnet"): Training("scratch/mxnet", "threads", "naive", 8),
    ("resnet18", "torch"): Training("concise/pytorch", "processes", "ring", 1),
    ("resnet18", "mxnet"): Training("concise/mxnet", "threads", "naive", 76),
}


@dataclass(frozen=True)
class Forecast:
    """What the cost model says of a training here.

    Attributes
    ----------
    step : Step
    best_num_gpus : int
        With the shortest step for this batch.
    simulated : bool
        There are fewer devices: they take turns, and the time is no speedup.
    fit_error : float
        The largest relative error of the fits that it rests on, as a warning.
    """

    step: Step
    best_num_gpus: int
    simulated: bool
    fit_error: float


def training_of(path) -> tuple[str, str] | None:
    """The network and the framework of the chapter that a notebook is.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    tuple of str or None
        (network, framework); None for any other notebook.
    """
    place = "/".join(Path(path).with_suffix("").parts[-2:])
    return next((key for key, t in TRAININGS.items() if t.chapter == place), None)


def forecast(network, framework, num_gpus, batch_size) -> Forecast | None:
    """The step of ``train(num_gpus, batch_size, …)``, from what was measured on one device.

    A measurement counts only for the code, the versions, the settings and the cores that it was
    made with.

    Parameters
    ----------
    network : str
        'lenet' or 'resnet18'.
    framework : str
        'torch' or 'mxnet'.
    num_gpus : int
        Devices, from 1 up.
    batch_size : int
        Global batch, from 1 up.

    Returns
    -------
    Forecast or None
        None if nothing that counts has been kept here, or if one device was measured and more are
        asked for.

    Raises
    ------
    CostError
        For another network or framework, and for numbers below 1.
    """
    need.whole("num_gpus", num_gpus)
    need.whole("batch_size", batch_size)
    entry = _kept(network, framework)
    if entry is None or num_gpus > entry[0].devices == 1:
        return None
    return predict(entry[0], entry[1], num_gpus, batch_size, entry[2])


def speedups(network, framework, batch_size, most) -> list[tuple[int, float]]:
    """Modelled speedups over one device, for one global batch.

    Parameters
    ----------
    network : str
        'lenet' or 'resnet18'.
    framework : str
        'torch' or 'mxnet'.
    batch_size : int
        Global batch, from 1 up.
    most : int
        Devices, from 1 up.

    Returns
    -------
    list of tuple
        (num_gpus, speedup) from 1 to ``most`` devices, as far as there are so many here and each
        gets an example: simulated devices have no speedup. Empty if nothing was measured.

    Raises
    ------
    CostError
        For another network or framework, and for numbers below 1.
    """
    need.whole("batch_size", batch_size)
    need.whole("most", most)
    entry = _kept(network, framework)
    if entry is None:
        return []
    calibration, work, _ = entry
    at_most = min(most, batch_size, calibration.devices)
    seconds = [
        predict(calibration, work, k, batch_size).step.seconds for k in range(1, at_most + 1)
    ]
    return [(k, seconds[0] / s) for k, s in enumerate(seconds, 1)]


def _kept(network, framework):
    """(calibration, work, fit_error) that was kept here, if it counts; else None."""
    file = _file(network, framework)
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        if entry["key"] != _key(framework, entry["source"]):
            return None
        return Calibration(**entry["calibration"]), Work(**entry["work"]), entry["fit_error"]
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none yet, not for us to read, by another version of this file


def predict(calibration, work, num_gpus, batch_size, fit_error=0.0) -> Forecast:
    """The forecast from what was measured of the devices and of a training.

    Parameters
    ----------
    calibration : Calibration
    work : Work
    num_gpus : int
        Devices, from 1 up.
    batch_size : int
        Global batch, from 1 up.
    fit_error : float
        Of ``work``, relative.

    Returns
    -------
    Forecast

    Raises
    ------
    CostError
        For several devices where there is one: how they talk was not measured. Also for
        numbers below 1.
    """
    need.kind("calibration", calibration, Calibration)
    need.whole("num_gpus", num_gpus)
    need.real("fit_error", fit_error)
    if num_gpus > calibration.devices == 1:
        raise CostError(f"Nothing is known here about {num_gpus} devices: there is one.")
    machine, simulated = calibration.machine, num_gpus > calibration.devices
    if simulated:  # they take turns
        turns = num_gpus / calibration.devices
        slowed = [turns * factor for factor in machine.slowed(num_gpus)]
        points = (*machine.slowdown, (num_gpus, *slowed))
        machine = replace(machine, devices=num_gpus, slowdown=points)
    modelled = step(work, machine, num_gpus, batch_size)
    at_most = min(batch_size, calibration.devices)
    best = best_num_gpus(work, calibration.machine, batch_size, at_most)
    error = max(fit_error, calibration.fit_error, calibration.spread)
    return Forecast(modelled, best, simulated, error)


def keep(network, framework, calibration, work, fit_error, source) -> None:
    """Keep what was measured of a training for ``forecast``.

    Parameters
    ----------
    network : str
        'lenet' or 'resnet18'.
    framework : str
        'torch' or 'mxnet'.
    calibration : Calibration
    work : Work
    fit_error : float
        Of ``work``, relative.
    source : str or Path
        The file with the training's code: another content ends the forecast.

    Raises
    ------
    CostError
        For another network or framework.
    """
    source = str(Path(source).resolve())
    entry = {
        "key": _key(framework, source),
        "source": source,
        "calibration": asdict(calibration),
        "work": asdict(work),
        "fit_error": fit_error,
    }
    save(_file(network, framework), json.dumps(entry, indent=1).encode())


def training(network, framework) -> Training:
    """How a network trains in a framework of this course.

    Parameters
    ----------
    network : str
        'lenet' or 'resnet18'.
    framework : str
        'torch' or 'mxnet'.

    Returns
    -------
    Training

    Raises
    ------
    CostError
        For another one.
    """
    known = {f"{n} with {f}": training for (n, f), training in TRAININGS.items()}
    asked = f"{network} with {framework}"
    need.choice("The training to forecast", asked, known)
    return known[asked]


def _file(network, framework):
    training(network, framework)  # or CostError
    return cache() / f"forecast-{network}-{framework}.json"


def _key(framework, source):
    """What a measurement depends on; as JSON reads it."""
    code = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    versions = {framework: version_of(framework), "d2lmgpu": __version__}
    settings = {name: os.environ.get(name) for name in SETTINGS}
    machine = {"cores": devices.num_cores(), "cpu": cpu_model()}  # homes may be shared
    return {"code": code, "versions": versions, **machine, **settings}
