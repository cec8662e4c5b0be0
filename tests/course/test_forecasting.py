"""Forecasts of the chapters: what they rest on, and when a kept measurement counts."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from d2lmgpu.costmodel import forecast as forecasts
from d2lmgpu.costmodel.forecast import forecast, predict
from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.costmodel.model import CostError, Work
from d2lmgpu.costmodel.short_runs import short_runs, step_seconds
from d2lmgpu.course import forecasting
from d2lmgpu.course.forecasting import BATCH_SIZES, measure
from d2lmgpu.machine.profiles import profile
from d2lmgpu.records.run import Run

TWO_CORES = Calibration(
    "torch", "threads", "naive", 2, 1e10, 1e-4, 1e9, ((1, 1.0, 1.0), (2, 2.0, 1.1)), 0.02, 0.03, 5.0
)
CASE = ("lenet", "torch")


class Train:
    """A ``train`` whose steps cost 3 ms and an image 0.5 ms on one device; the first epoch more."""

    def __init__(self):
        self.calls = []

    def __call__(self, num_gpus, batch_size, lr, num_epochs=None):
        images = profile().num_train
        self.calls.append((num_gpus, batch_size, images))
        print("epoch 1")
        epoch = -(-images // batch_size) * 3e-3 + images * 5e-4
        seconds = [epoch + 7.0] + [epoch] * (num_epochs - 1)
        return Run(num_gpus, batch_size, lr, images, "one device", [0.5] * num_epochs, seconds)


@pytest.fixture
def train(monkeypatch, tmp_path):
    """A machine with known devices and a known ``train``; nothing is measured."""
    train = Train()
    backend = type("Backend", (), {"profile": staticmethod(profile)})
    monkeypatch.setattr(forecasting.chapters, "load", lambda path: {"train": train, "d2l": backend})
    monkeypatch.setattr(forecasting, "calibrate", lambda framework, workers: TWO_CORES)
    monkeypatch.setenv("D2LMGPU_CACHE", str(tmp_path / "cache"))
    return train


def test_the_work_of_a_training_is_found_again(train, capsys):
    calibration, work = measure(*CASE)
    assert calibration == TWO_CORES and capsys.readouterr().out == ""
    assert (work.seconds_per_step, work.seconds_per_example) == pytest.approx((3e-3, 5e-4))
    assert work.gradient_bytes == 4 * 129_068 and work.messages == 8 and work.algorithm == "naive"


def test_only_runs_on_one_device_feed_a_forecast(train):
    measure("resnet18", "mxnet")
    assert [call[0] for call in train.calls] == [1] * len(BATCH_SIZES)
    assert all(images % batch == 0 for _, batch, images in train.calls)
    assert "D2LMGPU_IMAGES" not in os.environ


def test_a_forecast_by_hand(train):
    measure(*CASE)
    modelled = forecast(*CASE, num_gpus=2, batch_size=100)
    exchange = 8 * (2 * 1e-4 + 2 * 64_534 / 1e9)
    assert modelled.step.compute == pytest.approx(2.0 * 3e-3 + 1.1 * 50 * 5e-4)
    assert modelled.step.seconds == pytest.approx(modelled.step.compute + exchange)
    assert modelled.step.communication_share == pytest.approx(exchange / modelled.step.seconds)
    assert modelled.best_num_gpus == 2 and not modelled.simulated
    assert modelled.fit_error == pytest.approx(0.03)
    small = forecast(*CASE, num_gpus=1, batch_size=4)
    assert small.step.seconds == pytest.approx(3e-3 + 4 * 5e-4) and small.best_num_gpus == 1


def test_one_device_says_nothing_about_two(train, monkeypatch):
    alone = replace(TWO_CORES, devices=1, latency=None, bandwidth=None, slowdown=((1, 1.0, 1.0),))
    monkeypatch.setattr(forecasting, "calibrate", lambda framework, workers: alone)
    measure(*CASE)
    assert forecast(*CASE, 2, 256) is None
    modelled = forecast(*CASE, 1, 256)
    assert modelled.step.seconds == pytest.approx(3e-3 + 256 * 5e-4) and modelled.best_num_gpus == 1
    with pytest.raises(CostError, match="2 devices: there is one"):
        predict(alone, Work(1, 1), 2, 256)


def test_no_measurement_no_forecast(train):
    assert forecast(*CASE, 1, 256) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, folder: patch.setenv("D2LMGPU_DEVICES", "cpu:7"),
        lambda patch, folder: patch.setenv("D2LMGPU_PROFILE", "test"),
        lambda patch, folder: patch.setattr(forecasts.devices, "num_cores", lambda: 64),
        lambda patch, folder: (folder / "scratch" / "pytorch.ipynb").write_text("edited"),
        lambda patch, folder: (folder / "scratch" / "pytorch.ipynb").unlink(),
        lambda patch, folder: patch.setattr(forecasts, "version_of", lambda framework: "9.9"),
        lambda patch, folder: patch.setattr(forecasts, "__version__", "9.9"),
        lambda patch, folder: forecasts._file(*CASE).write_text("{"),
        lambda patch, folder: forecasts._file(*CASE).write_text("{}"),
    ],
)
def test_a_measurement_counts_only_for_what_was_measured(train, monkeypatch, tmp_path, change):
    monkeypatch.setattr(forecasting, "CHAPTERS", tmp_path)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "pytorch.ipynb").write_text("a chapter")
    measure(*CASE)
    assert forecast(*CASE, 1, 256) is not None
    change(monkeypatch, tmp_path)
    assert forecast(*CASE, 1, 256) is None


def test_the_first_epoch_does_not_count_and_a_ragged_batch_is_a_step(train):
    with short_runs(100):
        assert step_seconds(train, 1, 30) == pytest.approx((4 * 3e-3 + 100 * 5e-4) / 4)


def test_the_cap_on_images_and_the_silence_end_with_their_block(monkeypatch, capsys):
    monkeypatch.setenv("D2LMGPU_IMAGES", "5")
    with pytest.raises(ZeroDivisionError), short_runs(7):
        assert profile().num_train == 7
        print("within")
        1 / 0  # noqa: B018
    assert profile().num_train == 5
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_a_worker_of_the_lab_does_not_wait_for_ipython():
    code = "import sys, d2lmgpu.course.chapter_train; print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_package_without_its_chapters_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(forecasting, "CHAPTERS", tmp_path / "nowhere")
    with pytest.raises(CostError, match=r"nowhere.*clone"):
        measure(*CASE)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: forecast("vgg", "torch", 1, 256),
        lambda: measure("lenet", "jax"),
        lambda: forecast(["lenet"], "torch", 1, 256),
        lambda: forecast(None, None, 1, 256),
    ],
)
def test_unknown_trainings_are_named(ask):
    with pytest.raises(CostError, match=r"to forecast is .*lenet with torch"):
        ask()


def test_every_training_has_its_chapter():
    assert all(forecasting.notebook(*key).exists() for key in forecasts.TRAININGS)
