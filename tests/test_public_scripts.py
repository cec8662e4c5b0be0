"""The rows of scripts of others, and what is told of an answer about one."""

import json

import pytest

from benchmarks.public_scripts import PATH, is_right, kind, rows
from d2lmgpu.watch.check.run import OUTCOMES
from d2lmgpu.watch.check.words import MENDS


def test_what_is_right_to_say_can_be_said():
    every = [f"different {defect}" for defect in MENDS] + [*OUTCOMES]
    assert len(rows()) >= 30
    assert all(row["right"] in every and row["known"] for row in rows())
    assert len({(row["repository"], row["path"]) for row in rows()}) == len(rows())


@pytest.mark.parametrize(
    ("right", "outcome", "defect", "verdict"),
    [
        ("same", "same", "none", "right"),
        ("not compared", "not compared", "none", "right"),
        ("different sampler", "different", "sampler", "right"),
        ("different sampler", "different", "rate", "another defect"),
        ("different sampler", "same", "none", "false all-clear"),
        ("different sampler", "not compared", "none", "no answer"),
        ("same", "not compared", "none", "no answer"),
        ("same", "different", "rate", "false accusation"),
        ("not compared", "different", "rate", "false accusation"),
        ("not compared", "same", "none", "false all-clear"),
    ],
)
def test_kinds_of_answers(right, outcome, defect, verdict):
    row = {"right": right, "outcome": outcome, "defect": defect}
    assert kind(row) == verdict and is_right(row) == (verdict == "right")


def test_the_record_is_of_these_rows_and_says_nothing_false():
    recorded = json.loads(PATH.read_text(encoding="utf-8"))["rows"]
    asked = [{name: row[name] for name in rows()[0]} for row in recorded]
    assert asked == rows()
    assert [row["kind"] for row in recorded] == [kind(row) for row in recorded]
    assert not any(row["kind"].startswith("false") for row in recorded)
