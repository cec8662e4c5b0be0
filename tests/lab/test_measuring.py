"""Measuring this machine from the lab: with progress, ended by Stop, never beside a run."""

import json
import threading
from pathlib import Path

import pytest
import trains
from recording import SECONDS, idle

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import measuring, wire
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.outcome import Outcome
from d2lmgpu.records import steady

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
TRAINING = ("lenet", "torch")


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A lab of a training that can be measured, on a machine that has not been measured yet."""
    monkeypatch.setenv("D2LMGPU_CACHE", str(tmp_path / "cache"))
    lab = LabModel({"Python": trains.trains_a_little}, training=TRAINING, num_gpus=2, batch_size=64)
    lab.measurings = []
    lab.observe(lambda change: lab.measurings.append(change.new), "measuring")
    yield lab
    lab.stop()
    assert lab.measurer.wait(SECONDS) and lab.runner.wait(SECONDS)


def measured(lab):
    assert lab.measurer.wait(SECONDS)
    assert (lab.status, lab.measuring) == ("idle", None)
    return lab.message


def test_it_tells_how_far_it_is_and_leaves_no_run(lab, monkeypatch):
    monkeypatch.setattr(measuring, "measure_here", trains.measures_a_little)
    assert wire.state(lab)["can_measure"]
    lab.measure()
    assert lab.status == "running" and not lab.can_measure
    assert "forecasts now" in measured(lab)
    (start, half, end) = lab.measurings
    assert start["done"] == 0 and end is None
    assert half == {"done": 0.25, "message": "lenet with torch"}
    assert (lab.runs, lab.live, wire.live(lab), lab.details) == ([], None, None, "")


@pytest.mark.usefixtures("all_the_time")
def test_stop_ends_it(lab, monkeypatch):
    monkeypatch.setattr(measuring, "measure_here", trains.measures_on_and_on)
    half = threading.Event()
    lab.observe(lambda change: change.new and change.new["done"] and half.set(), "measuring")
    lab.measure()
    assert half.wait(SECONDS)
    lab.stop()
    assert measured(lab) == "Stopped." and wire.state(lab)["can_measure"]


def test_never_beside_a_run_nor_twice(lab, monkeypatch):
    monkeypatch.setattr(measuring, "measure_here", trains.measures_on_and_on)
    lab.measure()
    lab.run()
    assert "going on" in lab.message and lab.runs == []
    lab.measure()
    assert "going on" in lab.message
    lab.stop()
    measured(lab)
    waiting = LabModel({"Python": trains.waits}, training=TRAINING)
    waiting.run()
    waiting.measure()
    assert "going on" in waiting.message and waiting.measuring is None
    waiting.stop()
    idle(waiting)
    assert len(waiting.runs) == 1


def test_a_reset_ends_it_and_forgets(lab, monkeypatch):
    monkeypatch.setattr(measuring, "measure_here", trains.measures_on_and_on)
    lab.measure()
    lab.reset()
    assert measured(lab) == "Ready."


def test_what_the_command_refuses_is_said(lab, monkeypatch):
    monkeypatch.setattr(measuring, "measure_here", trains.cannot_measure)
    lab.measure()
    message = measured(lab)
    assert message.endswith("No such thing.") and "a line" in lab.printed[1]


@pytest.mark.parametrize("others, is_said", [(1.5, True), (0.1, False), (None, False)])
def test_a_machine_that_was_busy_meanwhile_is_said_to_be(monkeypatch, others, is_said):
    monkeypatch.setattr(measuring, "num_cores", lambda: 2)
    monkeypatch.setattr(steady.hardware, "affinity", lambda: 2)
    words = measuring.end_in_words(Outcome("finished", "Finished.", result={"others": others}))
    assert ("1.5 of 2 cores" in words) is is_said and "forecasts now" in words


def test_a_training_that_nobody_knows_cannot_be_measured():
    lab = LabModel({"Python": trains.trains_a_little})
    assert not lab.can_measure and not wire.state(lab)["can_measure"]
    lab.measure()
    assert lab.status == "idle" and "this training" in lab.message


@pytest.mark.needs("cores")
def test_afterwards_there_are_forecasts(lab):
    """The command itself, on this machine: LeNet in PyTorch."""
    lab = LabModel({"LeNet": ChapterTrain(CHAPTERS / "scratch" / "pytorch.ipynb")}, num_gpus=2)
    progress = []
    lab.observe(lambda change: change.new and progress.append(change.new["done"]), "measuring")
    assert wire.state(lab)["forecast"] is None and wire.state(lab)["forecasts"] == []
    lab.measure()
    assert lab.measurer.wait(600)
    assert "forecasts now" in lab.message, lab.details
    assert (
        len(progress) > 5 and progress == sorted(progress) and 0 <= progress[0] < progress[-1] < 1
    )
    state = json.loads(json.dumps(wire.state(lab), allow_nan=False))
    assert state["forecast"]["samples_per_second"] > 0
    low, high = state["forecast"]["error"]
    assert low < 0 < high and state["forecast"]["fit_error"] >= 0
    numbers_of_devices = [k for k, _ in state["forecasts"]]
    assert numbers_of_devices == list(range(1, len(numbers_of_devices) + 1))
    assert state["forecasts"][0] == [1, 1]
    first, second = (forecast_of(lab, k)["samples_per_second"] for k in (1, 2))
    if len(numbers_of_devices) > 1:
        assert state["forecasts"][1][1] == pytest.approx(second / first)


def forecast_of(lab, num_gpus):
    lab.num_gpus = num_gpus
    return wire.state(lab)["forecast"]
