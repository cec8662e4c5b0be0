"""What the browser gets: the contract's fields, finite numbers, curves of every run."""

import json
from contextlib import suppress
from itertools import pairwise
from math import inf, nan
from types import SimpleNamespace

import pytest
import trains
from hypothesis import given
from hypothesis import strategies as st
from notebook import notebook
from recording import idle
from shapes import FAIL, NO_NUMBERS, START, TRAIN

from d2lmgpu.lab import TrainingLab, wire
from d2lmgpu.lab.live import LabRun, Live
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.wire import MOST_POINTS, curves, thin

EVERYTHING = ("settings", "about", "state", "runs", "live", "table", "speedups", "files")


def sent(model):
    """All that goes to the browser, as it goes there."""
    everything = {name: getattr(wire, name)(model) for name in EVERYTHING}
    return json.loads(json.dumps(everything, allow_nan=False, ensure_ascii=False).encode())


def test_before_the_first_run_there_is_something_to_choose_and_nothing_to_see(lab):
    got = sent(lab)
    assert got["settings"] == {
        "train": "Python",
        "num_gpus": 2,
        "batch_size": 64,
        "lr": 0.2,
        "scale_lr": False,
        "num_epochs": None,
    }
    assert got["about"]["trains"] == ["Python"] and got["about"]["takes_epochs"]
    assert (got["about"]["most"], got["about"]["devices"]) == (16, None)
    assert (got["state"]["status"], got["state"]["forecast"]) == ("idle", None)
    assert got["state"]["forecasts"] == [] and got["state"]["measuring"] is None
    assert (got["runs"], got["live"], got["speedups"], got["files"]) == ([], None, [], {})
    assert got["table"] == {"columns": [], "rows": [], "remarks": [], "baseline": None}


def test_an_ended_run_keeps_its_curves_by_epoch_seconds_and_samples(lab):
    lab.run()
    idle(lab)
    got = sent(lab)
    (run,) = got["runs"]
    assert (run["id"], run["row"], run["status"]) == (1, 1, "finished")
    assert run["name"] == "2 devices, batch 64"
    assert run["timing"] in ("measured", "simulated") and run["forecast"] is None
    assert run["settings"]["batch_size"] == 64 and run["settings"]["num_epochs"] is None
    ((epoch, seconds, samples, value),) = run["curves"]["test accuracy"]
    assert (epoch, samples, value) == (1, 20, 0.5) and 0 < seconds < 60
    ((epoch, _, samples, speed),) = run["curves"]["samples/s"]
    assert (epoch, samples) == (1, 20) and speed > 0
    assert got["table"]["rows"][0]["runs"] == [1]
    assert got["table"]["rows"][0]["cells"]["Test accuracy"] == "0.500"
    assert set(got["files"]) == {"training-lab.csv", "training-lab-record.json"}
    assert json.loads(got["files"]["training-lab-record.json"])["runs"][0]["num_gpus"] == 2


def test_ids_are_never_used_again_and_repeats_have_names_of_their_own(lab):
    for batch_size in (64, 64, 128):
        lab.batch_size = batch_size
        lab.run()
        idle(lab)
    runs = wire.runs(lab)
    assert [run["id"] for run in runs] == [1, 2, 3]
    assert [run["row"] for run in runs] == [1, 1, 2]
    assert len({run["name"] for run in runs}) == 3
    assert [row["runs"] for row in wire.table(lab)["rows"]] == [[1, 2], [3]]
    lab.reset()
    assert wire.runs(lab) == []
    lab.run()
    idle(lab)
    assert [run["id"] for run in wire.runs(lab)] == [4]


def test_a_run_can_be_named_and_hidden_and_a_reset_forgets_it(lab):
    names = []
    lab.observe(lambda change: names.append(change.name), ["names", "hidden"])
    lab.run()
    idle(lab)
    lab.rename(1, "  the \n first ")
    lab.hide(1)
    assert wire.runs(lab)[0]["name"] == "the first" and lab.hidden == {1}
    lab.rename(1, "")
    lab.hide(1, False)
    assert wire.runs(lab)[0]["name"] == "2 devices, batch 64" and lab.hidden == set()
    assert names == ["names", "hidden", "names", "hidden"]
    for unknown in (2, "1", None, [1]):
        lab.rename(unknown, "x")
        lab.hide(unknown)
    assert (lab.names, lab.hidden) == ({}, set())
    lab.rename(1, "x" * 1000)
    lab.hide(1)
    assert len(wire.runs(lab)[0]["name"]) <= 80
    lab.reset()
    assert (lab.names, lab.hidden, lab.ended) == ({}, set(), [])


def test_what_observers_of_the_runs_see_is_whole(lab):
    seen = []
    lab.observe(lambda change: seen.append(sent(lab)), ["runs"])
    lab.run()
    idle(lab)
    assert [(len(state["runs"]), state["live"]) for state in seen] == [(1, None)]


def test_a_run_that_goes_on_is_told_live():
    lab = LabModel({"waits": waits_after_a_point}, num_epochs=4)
    seen = []

    def look(change):
        got = sent(lab)["live"]
        if got and got["run"]["curves"].get("loss"):
            seen.append(got)
            lab.stop()

    lab.observe(look, "news")
    lab.run()
    idle(lab)
    assert seen[0]["run"]["status"] == "running" and seen[0]["run"]["row"] is None
    assert seen[0]["progress"] == 0.125 and seen[0]["num_epochs"] == 4
    assert seen[0]["run"]["curves"]["loss"][0][0] == 0.5
    assert sent(lab)["live"] is None and sent(lab)["runs"][0]["status"] == "stopped"


def waits_after_a_point(num_gpus, batch_size, lr, num_epochs=None):
    trains.report("batch", epoch=1, done=10, of=20)
    trains.report("point", points=[(0, 7, 2.5)], legend=["loss"], xlabel="step")
    trains.waits(num_gpus, batch_size, lr)


@pytest.mark.parametrize("shape", [*TRAIN, *NO_NUMBERS, *FAIL])
def test_whatever_shape_a_train_has_it_can_be_sent(shape):
    code = TRAIN.get(shape) or (NO_NUMBERS | FAIL)[shape][0]
    lab = TrainingLab(notebook(START + code).train, batch_size=8).model
    lab.run()
    idle(lab)
    (run,) = sent(lab)["runs"]
    assert run["status"] == ("failed" if shape in FAIL else "finished")
    if shape in TRAIN:
        assert run["curves"] == {
            "test accuracy": [[1, 0.25, 20, 0.5]],
            "samples/s": [[1, 0.25, 20, 80]],
        }


NUMBER = st.one_of(st.floats(), st.integers(), st.just(10**400))
WORD = st.text(st.characters(), max_size=5)  # half a surrogate pair, too
POINT = st.tuples(st.integers(0, 3), NUMBER, NUMBER)
EVENT = st.one_of(
    st.fixed_dictionaries(
        {
            "event": st.just("batch"),
            "epoch": st.integers(1, 5),
            "done": st.integers(0, 50),
            "of": st.integers(1, 50),
            "time": st.floats(0, 1e6),
        }
    ),
    st.fixed_dictionaries({"event": st.just("loss"), "x": NUMBER, "loss": NUMBER}),
    st.fixed_dictionaries(
        {
            "event": st.just("point"),
            "points": st.lists(POINT, max_size=4),
            "legend": st.lists(WORD, max_size=3),
            "time": st.floats(0, 1e6),
        },
        optional={"xlabel": WORD, "ylabel": WORD, "xlim": st.tuples(NUMBER, NUMBER)},
    ),
)


@given(st.lists(EVENT, max_size=10), st.sampled_from([None, 1.5, nan, inf]))
def test_any_numbers_that_a_train_reports_can_be_sent(events, modelled):
    live = Live(None, modelled)
    live.take({"event": "started", "sharing": "one device", "time": 0.0})
    for event in events:
        with suppress(OverflowError):  # as the runner does: the run goes on
            live.take(event)
    settings = {
        "train": "\ud800",
        "version": "a",
        "num_gpus": 1,
        "batch_size": 8,
        "lr": nan,
        "num_epochs": None,
    }
    model = SimpleNamespace(present=LabRun(1, settings, live), ended=[], names={})
    got = wire.live(model)
    json.dumps(got, allow_nan=False, ensure_ascii=False).encode()
    for points in got["run"]["curves"].values():
        assert all(len(point) == 4 for point in points) and len(points) <= MOST_POINTS


@given(st.integers(0, 2000))
def test_thinning_keeps_the_ends_and_is_even(n):
    points = list(range(n))
    kept = thin(points)
    assert len(kept) <= MOST_POINTS and (n <= MOST_POINTS) <= (kept == points)
    assert kept[:1] == points[:1] and kept[-1:] == points[-1:]
    assert len({b - a for a, b in pairwise(kept[:-1])}) <= 1
    if n > MOST_POINTS:
        assert len(kept) > MOST_POINTS / 2 - 2


def test_an_axis_that_is_not_of_epochs_has_the_epoch_of_its_time():
    live = Live()
    live.take({"event": "started", "sharing": "one device", "time": 10.0})
    live.take(
        {
            "event": "point",
            "points": [(0, 3, 2.0)],
            "legend": ["loss"],
            "xlabel": "step",
            "time": 11.0,
        }
    )
    live.take({"event": "batch", "epoch": 2, "done": 50, "of": 100, "time": 12.0})
    live.take(
        {
            "event": "point",
            "points": [(0, 9, 1.0)],
            "legend": ["loss"],
            "xlabel": "step",
            "time": 12.5,
        }
    )
    assert curves(live) == {"loss": [[None, 1, None, 2], [1.5, 2.5, 150, 1]]}
