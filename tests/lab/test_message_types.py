"""What travels is what its type says: from a run to the lab, and from the lab to the browser."""

import json
import pickle
import typing
from pathlib import Path

import numpy as np
import pytest
from json_types import fault
from recording import SECONDS, Recorder, idle
from trains import prints_and_goes_on, raises, returns_a_run

from d2lmgpu.data.loader import DataIter
from d2lmgpu.lab import messages
from d2lmgpu.lab.functions import make_job
from d2lmgpu.lab.record import recorded
from d2lmgpu.lab.view import SOURCES, LabView
from d2lmgpu.process import lanes
from d2lmgpu.process.events import report
from d2lmgpu.process.messages import EVENTS
from d2lmgpu.records import store


def conforms(value, kind):
    """Fails unless ``value``, as it is sent, is of the type."""
    assert fault(json.loads(json.dumps(value, allow_nan=False)), kind) is None


def of(name):
    """The type of what a lab sends under this name."""
    return typing.get_type_hints(SOURCES[name][0])["return"]


def all_sent(model):
    for name, (make, _) in SOURCES.items():
        conforms(make(model), of(name))


def epoch(num_gpus, batch_size, lr):
    """An epoch of nothing, whose batches and loss are told as the course's loops do."""
    X = np.zeros((512, 1))
    for _ in range(2):
        batches = DataIter(X, X, batch_size, shuffle=True, convert=np.asarray)
        for rows, _ in batches:
            lanes.parallel(lambda fn, *each: [fn(*a) for a in zip(*each)], np.sum, [rows, rows])
            batches.report_loss([1.0, 2.0])
    report("point", points=[(0, 1.0, 0.5)], legend=["test acc"], xlim=[1, 2], xlabel="epoch")


def test_what_a_lab_sends_is_what_its_type_says(lab):
    all_sent(lab)
    lab.num_gpus = 0  # refused
    all_sent(lab)
    lab.num_gpus = 2
    lab.run()
    all_sent(lab)
    idle(lab)
    lab.num_gpus = 1
    lab.run()
    idle(lab)
    lab.baseline = 1
    all_sent(lab)
    assert len(lab.ended) == 2


def test_a_run_that_fails_is_sent_as_its_type_says(lab):
    lab.trains = {"Python": raises}
    lab.run()
    idle(lab)
    all_sent(lab)


@pytest.mark.parametrize(
    "path", sorted(Path(store.FOLDER).glob("*-quick.json")), ids=lambda p: p.stem
)
def test_a_record_is_sent_as_its_type_says(path):
    sent = recorded(json.loads(path.read_text(encoding="utf-8")), path.stem)
    for name in ("runs", "table", "speedups"):
        conforms(sent[name], of(name))


def test_the_browsers_fakes_are_of_these_types(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "browser"))
    import lab_page

    fakes = lab_page.numbers(live=lab_page.LIVE)
    for name in SOURCES.keys() & fakes.keys():
        conforms(fakes[name], of(name))


def test_the_browser_is_told_what_there_is_to_draw(lab):
    assert LabView(lab).names == [*SOURCES, "troubles"]


@pytest.mark.parametrize("train", [epoch, returns_a_run, raises])
def test_events_of_a_run_are_what_their_types_say(train):
    recorder = Recorder(time_limit=SECONDS)
    recorder.start(train)
    recorder.end()
    for event in recorder.events:
        conforms(event, EVENTS[event["event"]])
    if train is epoch:
        names = {event["event"] for event in recorder.events}
        assert {"ready", "started", "loss", "point", "batch"} <= names
        assert any(event["steps"]["number"] for event in recorder.named("batch"))


def test_what_a_run_prints_is_told_as_its_type_says():
    recorder = Recorder(time_limit=SECONDS)
    recorder.start(prints_and_goes_on)
    event = recorder.until("printed")
    recorder.runner.stop()
    recorder.end()
    conforms(event, EVENTS["printed"])


def test_another_field_or_another_type_is_noticed(lab):
    state = SOURCES["state"][0](lab)
    faults = {
        "has new": state | {"new": 1},
        "hint is 1": state | {"hint": 1},
        "has no": {"status": "idle"},
        "it.printed.lines is None": state | {"printed": {"lines": None, "text": ""}},
        "it.forecasts[0]": state | {"forecasts": [[1]]},
    }
    for words, wrong in faults.items():
        assert words in fault(wrong, messages.State)


def test_the_job_of_a_run_is_what_its_type_says():
    job = pickle.loads(make_job(returns_a_run, {"num_gpus": 1, "batch_size": 8, "lr": 0.1}))
    assert fault(job, messages.Job) is None
