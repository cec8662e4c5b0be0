"""The chapters' own ``train`` in the lab's workers: PyTorch, MXNet and processes that talk."""

import os
import signal
from pathlib import Path

import pytest
from recording import Recorder
from soaking import sample
from trains import trains_in_processes

from d2lmgpu.course.chapter_train import ChapterTrain

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
LAUNCHES = ("torch", "launch")  # the modules that a lab gives to a train which calls launch


@pytest.fixture(autouse=True)
def little_data(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")


@pytest.mark.parametrize(
    "chapter, modules",
    sample(
        1,
        [
            ("scratch/pytorch", ("torch",)),
            ("scratch/mxnet", ("mxnet",)),
            ("concise/pytorch", ("torch", "launch")),
        ],
    ),
)
def test_a_chapter_trains_in_the_lab(recorder, chapter, modules):
    train = ChapterTrain(CHAPTERS / f"{chapter}.ipynb")
    assert train.modules == modules and len(train.version()) == 8
    outcome = recorder.run(train, *modules, num_gpus=2, batch_size=64, lr=0.1, num_epochs=2)
    assert outcome.status == "finished", outcome
    assert outcome.result["num_samples"] == 512 and len(outcome.result["accuracies"]) == 2
    batch, loss = recorder.named("batch")[0], recorder.named("loss")[0]
    assert (batch["epoch"], batch["done"], batch["of"]) == (1, 64, 512)
    assert loss["x"] == 64 / 512 and 1 < loss["loss"] < 10, "ten classes, untrained: some log(10)"
    assert recorder.named("point")[-1]["points"][0][1] == 2


def test_ranks_report_are_stopped_and_told_apart_when_killed(mark):
    recorder = Recorder()
    recorder.start(trains_in_processes, *LAUNCHES, num_gpus=2)
    assert recorder.until("point")["rank"] == 0
    os.kill(recorder.until("point")["pid"], signal.SIGKILL)
    outcome = recorder.end()
    assert outcome.status == "failed"
    assert "Worker 0 of 2 was killed by SIGKILL" in outcome.message

    recorder.events.clear()
    recorder.start(trains_in_processes, *LAUNCHES, num_gpus=2)
    recorder.until("point")
    recorder.runner.stop()
    assert recorder.end().status == "stopped"
    assert {event["rank"] for event in recorder.named("point")} == {0}
