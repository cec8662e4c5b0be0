"""What a train returned: its numbers, or words on why they cannot be numbers of a run."""

import math
from types import SimpleNamespace

import pytest

from d2lmgpu.lab.outcome import outcome_of_return


@pytest.mark.parametrize(
    "numbers",
    [
        {"seconds": [math.inf]},
        {"seconds": [1.0, -1.0]},
        {"seconds": [math.nan]},
        {"seconds": None},
        {"seconds": 3.0},
        {"seconds": "12"},
        {"seconds": ["1"]},
        {"accuracies": {1: 0.5}},
        {"accuracies": {0.5, 0.6}},
        {"accuracies": [math.nan]},
        {"accuracies": [[0.5, 0.6]]},
        {"accuracies": [None]},
        {"accuracies": {"a": 0.5}},
        {"num_samples": -3},
        {"num_samples": 0},
        {"num_samples": 2.5},
        {"num_samples": math.inf},
        {"num_samples": True},
        {"num_samples": "many"},
    ],
)
def test_numbers_that_no_run_has_are_refused_in_words(numbers):
    (name,) = numbers
    for returned in (numbers, SimpleNamespace(**numbers)):
        outcome = outcome_of_return(returned)
        assert outcome["status"] == "failed" and f"returned {name}=" in outcome["message"]


def test_numbers_that_are_missing_are_not_made_up():
    outcome = outcome_of_return(SimpleNamespace(accuracies=[0.5]))
    assert outcome == {
        "status": "finished",
        "num_samples": None,
        "accuracies": [0.5],
        "seconds": [],
        "note": "",
    }
