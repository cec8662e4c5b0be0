"""Forecasts of this course's chapters: their own ``train`` is what is measured."""

import math
from pathlib import Path

from d2lmgpu.backend.arguments import LENET_SHAPES
from d2lmgpu.costmodel import CostError, forecast
from d2lmgpu.costmodel.least_squares import fit_line
from d2lmgpu.costmodel.measure import Calibration, calibrate
from d2lmgpu.costmodel.model import Work
from d2lmgpu.costmodel.probe import CALIBRATING
from d2lmgpu.costmodel.short_runs import short_runs, step_seconds
from d2lmgpu.course import chapters
from d2lmgpu.machine.files import CHAPTERS
from d2lmgpu.process.events import report

BATCH_SIZES = (64, 192, 384)


def notebook(network, framework) -> Path:
    """The chapter that teaches the ``train`` of a network; CostError where there is none."""
    path = CHAPTERS / f"{forecast.training(network, framework).chapter}.ipynb"
    if not path.exists():
        raise CostError(
            f"The training that is measured is that of {path}, which is not there. It is in the "
            "course's repository: clone it, and install the package from there with pip install "
            "-e ."
        )
    return path


def num_parameters(network, width) -> int:
    """Of LeNet, or of ResNet-18 for 10 classes, one channel in and ``width`` after the stem."""
    if network == "lenet":
        return sum(map(math.prod, LENET_SHAPES))
    return 2724 * width**2 + 286 * width + 10


def measure_work(network, framework) -> tuple[Work, float]:
    """(work, fit_error) of a chapter's ``train``, run on one device at each of `BATCH_SIZES`.

    A step takes work.seconds_per_step + work.seconds_per_example·batch, loading included.
    fit_error is the largest relative error of that.
    """
    training = forecast.training(network, framework)
    with short_runs():
        namespace = chapters.load(notebook(network, framework))
        seconds = []
        for number, batch_size in enumerate(BATCH_SIZES):
            done = CALIBRATING + (1 - CALIBRATING) * number / len(BATCH_SIZES)
            report("measuring", done=done, message=f"steps of the training, batch {batch_size}")
            seconds.append(step_seconds(namespace["train"], 1, batch_size))
        width = namespace["d2l"].profile().resnet_width
    fixed, example, fit_error = fit_line(BATCH_SIZES, seconds)
    gradient_bytes = 4 * num_parameters(network, width)  # float32
    work = Work(
        gradient_bytes,
        example,
        algorithm=training.algorithm,
        seconds_per_step=fixed,
        messages=training.messages,
    )
    return work, fit_error


def measure(network, framework) -> tuple[Calibration, Work]:
    """Calibrate, measure a chapter's ``train`` on one device, and keep both for `forecast`.

    Takes half a minute. Imports the framework; one a process.
    """
    source = notebook(network, framework)
    calibration = calibrate(framework, forecast.training(network, framework).workers)
    work, fit_error = measure_work(network, framework)
    forecast.keep(network, framework, calibration, work, fit_error, source)
    return calibration, work
