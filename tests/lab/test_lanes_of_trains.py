"""Where the time of a step goes, seen from the lab: chapters, and trains that use nothing."""

from itertools import pairwise
from pathlib import Path

import pytest
import trains
from recording import idle
from soaking import sample

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import wire
from d2lmgpu.lab.live import Live
from d2lmgpu.lab.model import LabModel
from d2lmgpu.process.lanes import LAST

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
STEPS = 8  # of an epoch, 512 images in batches of 64
EPOCHS = {"scratch/mxnet": 10}  # MXNet times a step each half second
PARTS = {  # chapter -> which parts of its steps can be told apart on two CPU devices
    "scratch/pytorch": {"loading", "computing", "exchanging", "waiting"},
    "scratch/mxnet": {"loading", "computing", "exchanging"},
    "concise/mxnet": {"loading", "computing", "exchanging"},
    "concise/pytorch": {"loading", "computing", "exchanging and waiting"},  # by DDP's own account
}


@pytest.mark.parametrize("chapter", sample({"concise/pytorch"}, PARTS))
def test_the_steps_of_a_chapter_are_told_as_far_as_they_can_be(recorder, monkeypatch, chapter):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:2")
    train = ChapterTrain(CHAPTERS / f"{chapter}.ipynb")
    settings = {"num_gpus": 2, "batch_size": 64, "lr": 0.1, "num_epochs": EPOCHS.get(chapter, 2)}
    outcome = recorder.run(train, *train.modules, **settings)
    assert outcome.status == "finished", outcome
    live, steps = Live(), [event["steps"] for event in recorder.named("batch")]
    for event in recorder.events:
        if event["event"] in ("started", "batch"):
            live.take(event)
    parts = {part for part, seconds in live.where.items() if seconds is not None}
    assert parts == PARTS[chapter] | {"other"}
    assert all(live.where[part] > 0 for part in PARTS[chapter])
    number, total = (sum(step[what] for step in steps) for what in ("number", "total"))
    assert sum(filter(None, live.where.values())) == pytest.approx(total / number)
    if "exchanging and waiting" in parts:  # of every step, not only of those that DDP samples
        for step in steps:
            whats = [what for _, what, *_ in step["lanes"]]
            assert whats.count("exchanging and waiting") == min(LAST, step["number"])
    # The first step is not counted; in MXNet those are left out, too, that do not wait.
    most = STEPS * settings["num_epochs"] - 1
    assert number == most or ("mxnet" in chapter and 1 <= number <= most)
    assert total < sum(outcome.result["seconds"]), "what train itself has timed"
    assert len(live.lanes) == (2 if "waiting" in parts else 1)
    for lane in live.lanes:
        assert {span["what"] for span in lane} <= parts
        assert all(0 < span["start"] < span["end"] < 600 for span in lane)
        order = sorted(lane, key=lambda span: span["start"])
        assert all(span["end"] <= next["start"] + 1e-3 for span, next in pairwise(order))


def test_a_train_that_uses_nothing_of_ours_is_not_told(lab):
    lab.run()
    idle(lab)
    (run,) = wire.runs(lab)
    assert (run["where"], run["memory"], lab.live.lanes) == (None, None, [])


def test_a_loader_alone_is_told_alone():
    lab = LabModel({"Python": goes_through_its_data}, num_gpus=1, batch_size=8, lr=0.1)
    lab.run()
    idle(lab)
    (run,) = wire.runs(lab)
    assert run["status"] == "finished", lab.details
    assert run["where"]["loading"] > 0 and run["where"]["other"] > 0
    assert [run["where"][part] for part in ("computing", "exchanging", "waiting")] == [None] * 3


def goes_through_its_data(num_gpus, batch_size, lr):
    for _ in trains.loads_little_data(num_gpus, batch_size, lr):
        sum(range(10_000))


def test_memory_is_the_last_that_was_told():
    live = Live()
    live.take({"event": "started", "sharing": "one device", "time": 0.0})
    steps = {"number": 0, "seconds": {}, "total": 0.0, "lanes": []}
    for memory in ([5, 7], [6, 7], None):
        event = {"event": "batch", "epoch": 1, "done": 1, "of": 2, "time": 1.0}
        live.take(event | {"steps": steps | {"memory": memory}})
    assert (live.memory, live.where) == ([6, 7], None)
