"""What a chapter's training will take on this machine, said before it runs.

    python -m d2lmgpu.forecasts resnet18 torch     measures, in half a minute; kept in the cache

A forecast puts together two measurements: of the devices (`calibration`), and of the chapter's own
``train`` on *one* device at a few batch sizes. What more devices or another batch will take is
modelled. Reading a forecast needs no framework.
"""

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from d2lmgpu import chapters, devices, profiles
from d2lmgpu.calibration import Calibration, affine, calibrate
from d2lmgpu.costmodel import CostError, Step, Work, best_num_gpus, step
from d2lmgpu.datafiles import cache
from d2lmgpu.records import cpu_model

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
IMAGES, BATCH_SIZES, NUM_EPOCHS = 768, (64, 192, 384), 4
SETTINGS = (profiles.VARIABLE, devices.VARIABLE, "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Training:
    """A chapter's ``train``: what drives its devices, and in how many messages gradients go."""

    chapter: str
    how: str
    algorithm: str
    messages: int

    @property
    def path(self) -> Path:
        return CHAPTERS / f"{self.chapter}.ipynb"


TRAININGS = {
    ("lenet", "torch"): Training("scratch/pytorch", "threads", "naive", 8),
    ("lenet", "mxnet"): Training("scratch/mxnet", "threads", "naive", 8),
    ("resnet18", "torch"): Training("concise/pytorch", "processes", "ring", 1),
    ("resnet18", "mxnet"): Training("concise/mxnet", "threads", "naive", 76),
}


@dataclass(frozen=True)
class Forecast:
    """Modelled. `step` is the cost model's; `best_num_gpus` has the shortest step for this batch.

    simulated: more devices than there are; they take turns, and the time says nothing about
    speedup. misfit: the largest relative error of the fits that it rests on, as a warning.
    """

    step: Step
    best_num_gpus: int
    simulated: bool
    misfit: float


def training_of(path) -> tuple[str, str] | None:
    """(network, framework) of the chapter that the notebook ``path`` is; None for any other."""
    place = "/".join(Path(path).with_suffix("").parts[-2:])
    return next((key for key, t in TRAININGS.items() if t.chapter == place), None)


def forecast(network, framework, num_gpus, batch_size) -> Forecast | None:
    """The step of ``train(num_gpus, batch_size, …)``; None if `measure` has not been run here, or
    if it found one device and more are asked for.

    network: 'lenet' or 'resnet18'; framework: 'torch' or 'mxnet'. A measurement counts only for the
    chapter, the settings and the cores that it was made with. Raises CostError for anything else,
    num_gpus below 1 or batch_size below 1.
    """
    file = _file(network, framework)
    try:
        kept = json.loads(file.read_text())
        if kept["key"] != _key(network, framework):
            return None
        calibration, work = Calibration(**kept["calibration"]), Work(**kept["work"])
        misfit = float(kept["misfit"])
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none yet, not for us to read, or by another version of this file
    if num_gpus > calibration.devices == 1:
        return None
    return predict(calibration, work, num_gpus, batch_size, misfit)


def predict(calibration, work, num_gpus, batch_size, misfit=0.0) -> Forecast:
    """The Forecast from a Calibration and the Work of a training.

    Raises CostError for several devices where there is one: how they talk was not measured.
    """
    if num_gpus > calibration.devices == 1:
        raise CostError(f"Nothing is known here about {num_gpus} devices: there is one.")
    machine, simulated = calibration.machine, num_gpus > calibration.devices
    if simulated:  # they take turns
        turns = num_gpus / calibration.devices
        slowed = [turns * factor for factor in machine.slowed(num_gpus)]
        points = (*machine.slowdown, (num_gpus, *slowed))
        machine = replace(machine, devices=num_gpus, slowdown=points)
    found = step(work, machine, num_gpus, batch_size)
    at_most = min(batch_size, calibration.devices)
    best = best_num_gpus(work, calibration.machine, batch_size, at_most)
    return Forecast(found, best, simulated, max(misfit, calibration.misfit, calibration.spread))


def measure(network, framework) -> tuple[Calibration, Work]:
    """Calibrate, measure the chapter's ``train`` on one device, and keep both in the cache.

    Imports the framework; one a process.
    """
    training = _training(network, framework)
    calibration = calibrate(framework, training.how)
    work, misfit = measure_work(network, framework)
    kept = {"key": _key(network, framework), "calibration": asdict(calibration),
            "work": asdict(work), "misfit": misfit}  # fmt: skip
    file = _file(network, framework)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(kept, indent=1))
    fresh.replace(file)
    return calibration, work


def measure_work(network, framework, repeats=1) -> tuple[Work, float]:
    """(work, misfit) of the chapter's ``train``, from runs on one device at `BATCH_SIZES`.

    A step takes work.fixed + work.example·batch seconds, loading included; misfit is the largest
    relative error of that.
    """
    training, times = _training(network, framework), {n: [] for n in BATCH_SIZES}
    with short_runs():
        namespace = chapters.load(training.path)
        width = namespace["d2l"].profile().resnet_width
        for _ in range(repeats):
            for n in BATCH_SIZES:
                times[n].append(step_seconds(namespace["train"], 1, n))
    fixed, example, misfit = affine(BATCH_SIZES, [median(times[n]) for n in BATCH_SIZES])
    num_bytes = 4 * (129_068 if network == "lenet" else resnet18_parameters(width))
    work = Work(num_bytes, example, algorithm=training.algorithm, fixed=fixed,
                messages=training.messages)  # fmt: skip
    return work, misfit


def step_seconds(train, num_gpus, batch_size) -> float:
    """Median seconds of a step of ``train``; its first epoch warms up and does not count.

    The epoch should be whole batches.
    """
    run = train(num_gpus, batch_size, 0.05, NUM_EPOCHS)
    return median(run.seconds[1:]) / -(-run.num_samples // batch_size)


@contextlib.contextmanager
def short_runs(num_images=IMAGES):
    """Within it, a run uses at most ``num_images`` of its profile, and prints and draws nothing."""
    from IPython.utils.capture import capture_output  # not above: a lab's click would wait for it

    before = os.environ.get(profiles.CAP)
    os.environ[profiles.CAP] = str(num_images)
    try:
        with capture_output():
            yield
    finally:
        del os.environ[profiles.CAP]
        if before is not None:
            os.environ[profiles.CAP] = before


def resnet18_parameters(width: int) -> int:
    """How many parameters `resnet18(10, width=width)` learns, for one input channel."""

    def layer(inputs, outputs, kernel):  # a convolution with its bias and batch normalization
        return kernel**2 * inputs * outputs + 3 * outputs

    total, before = layer(1, width, 3), width
    for stage in range(4):
        c = width * 2**stage
        total += layer(before, c, 3) + 3 * layer(c, c, 3)
        total += (before * c + c) * (stage > 0)  # the shortcut has no normalization
        before = c
    return total + 10 * before + 10


def _training(network, framework):
    if (network, framework) not in TRAININGS:
        known = ", ".join(f"{n} with {f}" for n, f in TRAININGS)
        raise CostError(f"No forecast for {network!r} with {framework!r}; there is {known}.")
    return TRAININGS[network, framework]


def _file(network, framework):
    _training(network, framework)
    return cache() / f"forecast-{network}-{framework}.json"


def _key(network, framework):
    """What a measurement depends on; as JSON reads it."""
    chapter = hashlib.sha256(_training(network, framework).path.read_bytes()).hexdigest()
    settings = {name: os.environ.get(name) for name in SETTINGS}
    machine = {"cores": devices.num_cores(), "cpu": cpu_model()}  # homes may be shared
    return {"chapter": chapter, **machine, **settings}


if __name__ == "__main__":
    measured, _ = measure(*sys.argv[1:])
    for k in range(1, measured.devices + 1):
        said = forecast(*sys.argv[1:], k, 256)
        print(f"modelled, {k} of {measured.devices} devices, batch 256: "
              f"{1000 * said.step.seconds:.1f} ms a step, {said.step.communication_share:.1%} of "
              f"it communication; the fits hold within {said.misfit:.0%}")  # fmt: skip
