"""Runs and what they say of themselves, also where numbers are missing or none."""

import pytest

from d2lmgpu.machine.devices import RunError
from d2lmgpu.records.compare import Trial, numbers, rows
from d2lmgpu.records.run import Run

NONE = (float("inf"), float("-inf"), float("nan"), -1.0, "2", None)


@pytest.mark.parametrize("wrong", NONE)
def test_seconds_that_no_epoch_can_take_are_refused(wrong):
    with pytest.raises(RunError, match="seconds"):
        Run(1, 256, 0.1, 6000, "one device", [0.5, 0.6], [2.0, wrong])
    with pytest.raises(RunError, match="seconds"):
        numbers(6000, [0.5], [wrong])


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), "0.5", None])
def test_accuracies_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(RunError, match="accuracies"):
        Run(1, 256, 0.1, 6000, "one device", [wrong], [2.0])


@pytest.mark.parametrize("wrong", [-1, 2.5, "600", float("inf")])
def test_a_number_of_samples_is_a_whole_number(wrong):
    with pytest.raises(RunError, match="num_samples"):
        Run(1, 256, 0.1, wrong, "one device", [0.5], [2.0])


@pytest.mark.parametrize("wrong", [3, "ab", None, {1.0: 2}])
def test_the_numbers_of_the_epochs_are_a_sequence(wrong):
    with pytest.raises(RunError, match="seconds"):
        Run(1, 256, 0.1, 6000, "one device", [0.5], wrong)


@pytest.mark.parametrize(
    "run",
    [
        Run(1, 256, 0.1, 6000, "one device"),
        Run(1, 256, 0.1, 6000, "one device", [], [2.0]),
        Run(2, 256, 0.1, 6000, "simulated", [0.5], []),
        Run(1, 256, 0.1, None, None, [0.5], [2.0]),
    ],
)
def test_a_run_without_some_numbers_can_be_displayed(run):
    assert run.accuracy == (0.5 if run.accuracies else None)
    assert run.samples_per_second == (3000 if run.seconds and run.num_samples else None)
    assert "batch 256" in str(run) and repr(run) == str(run)
    assert "None" not in str(run)


def test_numbers_that_a_run_did_not_give_are_none():
    given = numbers(None, [], [])
    assert [given[name] for name in ("samples_per_second", "seconds_per_epoch", "accuracy")] == (
        [None] * 3
    )


def trial(**values):
    about = {
        "train": "t",
        "version": "a",
        "num_gpus": 1,
        "batch_size": 64,
        "lr": 0.1,
        "num_epochs": None,
        "sharing": "one device",
        "status": "finished",
        "started": "",
        "message": "",
        "samples_per_second": 100.0,
        "seconds_per_epoch": 1.0,
        "accuracy": 0.5,
    }
    return Trial(**about | values)


@pytest.mark.parametrize(
    "name, wrong",
    [
        *(
            (name, wrong)
            for name in ("samples_per_second", "seconds_per_epoch")
            for wrong in NONE[:-1]
        ),
        ("samples_per_second", 0.0),
        ("accuracy", float("nan")),
    ],
)
def test_no_such_number_gets_into_the_table(name, wrong):
    with pytest.raises(RunError, match=name):
        trial(**{name: wrong})


def test_one_run_without_numbers_leaves_the_others_in_the_table():
    bare = trial(samples_per_second=None, seconds_per_epoch=None, accuracy=None, num_epochs=2)
    assert [row.speedup for row in rows([bare, trial(), trial(num_gpus=2, sharing="in parallel")])]


@pytest.mark.parametrize(
    "sharing, seconds, unsteady",
    [
        ("in parallel", [9.0, 2.0, 2.1, 2.2], False),  # the first epoch warms up
        ("in parallel", [2.0, 2.0, 2.1, 3.2], True),
        ("simulated", [2.0, 2.0, 2.1, 3.2], False),
        ("one device", [2.0], False),
    ],
)
def test_epochs_that_differ_do_not_tell_how_fast_a_run_is(sharing, seconds, unsteady):
    accuracies = [0.5] * len(seconds)
    assert bool(Run(2, 256, 0.1, 6000, sharing, accuracies, seconds).unsteady) is unsteady
