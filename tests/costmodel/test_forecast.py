"""Forecasts from known measurements, and what reading one needs."""

import subprocess
import sys

import pytest

from d2lmgpu.costmodel import forecast as forecasts
from d2lmgpu.costmodel.forecast import forecast, predict, training_of
from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.costmodel.model import CostError, Work

TWO_CORES = Calibration(
    "torch", "threads", "naive", 2, 1e10, 1e-4, 1e9, ((1, 1.0, 1.0), (2, 2.0, 1.1)), 0.02, 0.03, 5.0
)
CASE = ("lenet", "torch")


def test_simulated_devices_take_turns():
    work = Work(1000, 1e-3, seconds_per_step=1e-3, algorithm="naive")
    two, six = (predict(TWO_CORES, work, k, 60) for k in (2, 6))
    assert six.simulated and not two.simulated
    assert six.step.compute == pytest.approx(3 * (2.0 * 1e-3 + 1.1 * 10 * 1e-3))
    assert six.best_num_gpus == two.best_num_gpus == 2  # never more than there are
    assert predict(TWO_CORES, work, 1, 1).best_num_gpus == 1


def test_which_training_a_notebook_is():
    assert training_of("../scratch/mxnet.ipynb") == ("lenet", "mxnet")
    assert training_of("/x/chapters/concise/pytorch.ipynb") == ("resnet18", "torch")
    assert training_of("chapters/lab/gluon-mnist.ipynb") is None


def test_a_forecast_knows_no_chapter(tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_CACHE", str(tmp_path))
    source = tmp_path / "mine.py"
    source.write_text("def train(): ...")
    forecasts.keep(*CASE, TWO_CORES, Work(1, 1e-3), 0.0, source)
    assert forecast(*CASE, 1, 8).step.seconds == pytest.approx(8e-3)
    source.write_text("def train(): pass")
    assert forecast(*CASE, 1, 8) is None


@pytest.mark.parametrize(
    ("num_gpus", "batch_size", "message"),
    [
        (0, 256, "num_gpus is 0"),
        (1, 0, "batch_size is 0"),
        (3, -1, "batch_size is -1"),
    ],
)
def test_bad_numbers_are_named(num_gpus, batch_size, message):
    with pytest.raises(CostError, match=message):
        predict(TWO_CORES, Work(1, 1), num_gpus, batch_size)


def test_reading_a_forecast_needs_no_framework():
    code = (
        "import sys, d2lmgpu.costmodel.forecast\n"
        "print({'torch', 'mxnet', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
