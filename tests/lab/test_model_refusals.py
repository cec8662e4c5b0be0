"""What a lab does not do, and says: nothing runs, nothing is dropped in silence."""

import threading
import types
from types import SimpleNamespace

import pytest
import trains
from recording import idle
from trains import trains_a_little

from d2lmgpu.lab.functions import JobError
from d2lmgpu.lab.model import LabModel


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"num_gpus": 17}, "num_gpus=17.*1 to 16"),
        ({"num_gpus": 0}, "num_gpus=0"),
        ({"batch_size": 1}, "batch_size=1 is below num_gpus=2"),
        ({"lr": float("nan")}, "lr=nan"),
        ({"lr": 0.0}, "lr=0"),
        ({"num_epochs": 0}, "num_epochs=0"),
    ],
)
def test_wrong_settings_are_told_and_nothing_runs(lab, settings, words):
    for name, value in settings.items():
        setattr(lab, name, value)
    lab.run()
    assert lab.status == "idle" and lab.runs == []
    assert words.split(".*")[0] in lab.message and words.split(".*")[-1] in lab.message


def test_what_cannot_be_sent_is_told():
    lab = LabModel({"Python": trains_a_little}, fixed={"accuracy": threading.Lock()})
    lab.run()
    idle(lab)
    assert "The argument 'accuracy' is of type lock" in lab.message
    assert lab.runs[0].status == "failed"


def nested():
    def trains_a_little(num_gpus, batch_size, lr):
        return SimpleNamespace(num_samples=1, accuracies=[0.125], seconds=[1.0])

    return trains_a_little


def returns_nothing(num_gpus, batch_size, lr):
    trains_a_little(num_gpus, batch_size, lr)


def test_the_function_that_was_given_runs_and_not_one_of_the_same_name():
    lab = LabModel({"Python": nested()})
    lab.run()
    idle(lab)
    assert lab.runs[0].accuracy == 0.125
    older = types.FunctionType(returns_nothing.__code__, globals(), "trains_a_little")
    older.__qualname__ = older.__name__
    with pytest.raises(JobError, match="Another function is called 'trains_a_little'"):
        LabModel({"before": older, "after": trains_a_little})


@pytest.mark.parametrize(
    "given, words",
    [
        ({"trains": {}}, "at least one function"),
        ({"batchsize": 512}, "'batchsize': give one of num_gpus, batch_size, lr, num_epochs"),
        ({"fixed": {"num_epochs": 9}}, "'num_epochs': give it as a setting: the lab has a field"),
        ({"time_limit": -1}, "time_limit is -1: give a number of seconds above 0"),
        ({"time_limit": "5"}, "time_limit is '5'"),
        ({"time_limit": float("inf")}, "time_limit is inf"),
        ({"trains": trains_a_little}, "a dict from names"),
        ({"trains": [trains_a_little]}, "a dict from names"),
        ({"trains": {1: trains_a_little}}, "The name of a function is 1: give a string"),
        ({"fixed": ["accuracy"]}, "fixed is .*: give a dict"),
        ({"fixed": {1: 2}}, "A name in fixed is 1: give a string"),
        ({"num_gpus": "2"}, "num_gpus is '2': give a whole number"),
        ({"num_gpus": 2.0}, "num_gpus is 2.0: give a whole number"),
        ({"batch_size": None}, "batch_size is None: give a whole number"),
        ({"lr": "fast"}, "lr is 'fast': give a number"),
        ({"num_epochs": True}, "num_epochs is True: give a whole number"),
    ],
)
def test_a_lab_that_cannot_be_is_refused(given, words):
    with pytest.raises(JobError, match=words):
        LabModel(**{"trains": {"Python": trains_a_little}} | given)


def test_a_decoration_is_not_lost_in_silence():
    nb = types.ModuleType("__main__")
    exec("import functools\ndef train(num_gpus, batch_size, lr): pass", vars(nb))
    exec("@functools.wraps(train)\ndef timed(*a, of=train, **k): return of(*a, **k)", vars(nb))
    model = LabModel({"timed": nb.timed}, num_gpus=1, batch_size=8, lr=0.1)
    exec("def train(num_gpus, batch_size, lr): return 'edited'", vars(nb))
    model.run()
    assert model.status == "idle" and "decorat" in model.message


def test_a_run_that_cannot_start_leaves_the_lab_idle(monkeypatch):
    def start(*args, **kwargs):
        raise JobError("It cannot be sent.")

    lab = LabModel({"Python": trains_a_little})
    monkeypatch.setattr(lab.runner, "start", start)
    lab.run()
    assert (lab.status, lab.message, lab.runs) == ("idle", "It cannot be sent.", [])


def test_epochs_that_a_train_does_not_take_are_not_dropped_in_silence():
    lab = LabModel({"Python": trains.finishes}, num_epochs=3)
    lab.run()
    assert lab.status == "idle" and "unexpected keyword argument 'num_epochs'" in lab.message


def test_whatever_goes_wrong_with_an_outcome_the_lab_is_idle(lab, monkeypatch):
    monkeypatch.setattr("d2lmgpu.records.compare.numbers", lambda *numbers: 1 / 0)
    lab.run()
    idle(lab)
    assert "Finished. The run cannot be shown: division by zero" in lab.message
    assert "ZeroDivisionError" in lab.details
