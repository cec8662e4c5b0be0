"""The sentence that explains a run's difference: from measured parts, or none at all."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from d2lmgpu.lab.why import why
from d2lmgpu.process.step_parts import MEETING, OF_A_LANE, OTHER, part_change
from d2lmgpu.records import compare

ROOT = Path(__file__).resolve().parents[2]

ONE_DEVICE = {
    "loading": 0.001,
    "computing": 0.095,
    "exchanging": 0.0,
    "waiting": 0.0,
    "other": 0.004,
}
TWO = {"loading": 0.001, "computing": 0.050, "exchanging": 0.006, "waiting": 0.001, "other": 0.003}
STEPS = 10  # an epoch


def ended(
    where, num_gpus=1, batch_size=256, sharing="in parallel", version="a", seconds=None, unsteady=""
):
    """A run whose epochs take as long as its steps, or ``seconds``."""
    if seconds is None:
        seconds = STEPS * sum(filter(None, where.values()))
    trial = compare.Trial(
        "train",
        version,
        num_gpus,
        batch_size,
        0.1,
        None,
        sharing,
        "finished",
        started="",
        message="",
        unsteady=unsteady,
        **compare.numbers(STEPS * batch_size, [0.5], [seconds]),
    )
    return SimpleNamespace(trial=trial, live=SimpleNamespace(where=where))


def sentence_of(*runs):
    trials = [run.trial for run in runs]
    for number, trial in enumerate(trials, 1):
        trial.id = number
    return why(SimpleNamespace(ended=list(runs), table=lambda: compare.rows(trials)))


def milliseconds(sentence):
    return [float(number) for number in re.findall(r"([\d.,]+) ms", sentence.replace(",", ""))]


def test_two_devices_that_are_faster():
    sentence = sentence_of(ended(ONE_DEVICE), ended(TWO, 2))
    assert "On 2 devices" in sentence and "on 1" in sentence and "0.61" in sentence
    assert "computing fell from 95 ms to 50 ms" in sentence
    assert "exchanging took 6.0 ms" in sentence
    assert "loading" not in sentence, "it has not changed"
    assert milliseconds(sentence) == [61, 100, 95, 50, 6]


def test_two_devices_that_are_slower():
    slow = TWO | {"exchanging": 0.080, "waiting": 0.030}
    sentence = sentence_of(ended(ONE_DEVICE), ended(slow, 2))
    assert "1.64 times as long" in sentence
    order = ["exchanging took 80 ms", "computing fell", "waiting took 30 ms"]
    assert sorted(order, key=sentence.index) == order, "the largest change first"


def test_the_batch_of_each_device_kept():
    weak = TWO | {"computing": 0.096}
    sentence = sentence_of(ended(ONE_DEVICE, batch_size=128), ended(weak, 2, batch_size=256))
    assert "256 images, not 128" in sentence and "computing" not in sentence
    assert "exchanging took 6.0 ms" in sentence


def test_the_newest_repeat_is_compared_with_the_newest_of_its_baseline():
    newest = TWO | {"computing": 0.040}
    sentence = sentence_of(
        ended(ONE_DEVICE), ended(TWO, 2), ended(ONE_DEVICE | {"computing": 0.090}), ended(newest, 2)
    )
    assert "from 90 ms to 40 ms" in sentence


def test_what_was_not_told_apart_is_one_part():
    merged = TWO | {"computing": 0.051, "waiting": None}
    sentence = sentence_of(ended(ONE_DEVICE), ended(merged, 2))
    assert "computing and waiting fell from 95 ms to 51 ms" in sentence


def test_processes_that_wait_while_they_exchange():
    apart = {"exchanging": None, "waiting": None}
    first, second = (
        where | apart | {"exchanging and waiting": seconds}
        for where, seconds in ((ONE_DEVICE, 0.0), (TWO, 0.008))
    )
    sentence = sentence_of(ended(first), ended(second, 2))
    assert "computing fell from 95 ms to 50 ms, exchanging and waiting took 8.0 ms" in sentence


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [ended(ONE_DEVICE)],  # its own baseline
        [ended(ONE_DEVICE), ended(ONE_DEVICE)],
        [ended(TWO, 2)],  # without a baseline
        [ended(ONE_DEVICE), ended(TWO, 2, sharing="simulated")],
        [ended(ONE_DEVICE), ended(None, 2, seconds=0.6)],
        [ended(None, seconds=1.0), ended(TWO, 2)],
        [ended(ONE_DEVICE), ended(TWO, 2, version="b")],
        [ended(ONE_DEVICE), ended(TWO, 2, batch_size=100)],  # neither batch is kept
        [
            ended(ONE_DEVICE),
            ended(ONE_DEVICE | {"computing": 0.01}, 2),
        ],  # more than twice as fast: not explained
    ],
)
def test_where_there_is_nothing_to_compare_nothing_is_said(runs):
    assert sentence_of(*runs) == ""


@pytest.mark.parametrize(
    "runs, words",
    [
        ([ended(ONE_DEVICE), ended(TWO, 2, seconds=0.9)], "as fast as the whole run"),
        # the parts that were timed are not why:
        ([ended(ONE_DEVICE), ended(ONE_DEVICE | {"other": 0.054}, 2)], "not in the parts"),
        (
            [ended(ONE_DEVICE), ended(ONE_DEVICE | {"computing": 0.090, "other": 0.034}, 2)],
            "not in the parts",
        ),
        (
            [
                ended(dict.fromkeys(ONE_DEVICE) | {"other": 0.1}),
                ended(dict.fromkeys(ONE_DEVICE) | {"other": 0.06}, 2),
            ],
            "not in the parts",
        ),
        # nothing changed:
        ([ended(ONE_DEVICE), ended(ONE_DEVICE | {"computing": 0.0945}, 2)], "not in the parts"),
        ([ended(ONE_DEVICE), ended(TWO, 2, unsteady="it jumped")], "unsteady: it jumped"),
        (
            [ended(ONE_DEVICE, unsteady="it jumped"), ended(TWO, 2)],
            "Row 1, its baseline, was unsteady",
        ),
    ],
)
def test_where_it_cannot_be_told_that_is_said_and_no_time(runs, words):
    assert words in sentence_of(*runs) and milliseconds(sentence_of(*runs)) == []


def test_a_steady_repeat_is_what_is_compared():
    noisy = ended(ONE_DEVICE | {"computing": 0.3}, unsteady="it jumped")
    assert "from 95 ms to 50 ms" in sentence_of(ended(ONE_DEVICE), noisy, ended(TWO, 2))


@pytest.mark.parametrize("part", ["computing", "exchanging", "waiting", "loading"])
def test_the_changes_that_are_told_are_those_of_the_parts(part):
    base = dict.fromkeys(ONE_DEVICE, 0.02)
    sentence = sentence_of(ended(base), ended(base | {part: 0.05}, 2))
    assert sentence.count(" from ") == 1 and "from 20 ms to 50 ms" in sentence
    assert part in sentence


def test_the_lanes_in_the_browser_have_the_parts_of_the_sentence():
    script = (ROOT / "d2lmgpu" / "lab" / "web" / "lanes.js").read_text(encoding="utf-8")
    meeting = re.search(r'static MEETING = "([^"]*)"', script)[1]
    listed = re.search(r"static WHAT = \[([^]]*)\]", script)[1].split(", ")
    shown = [meeting if name == "LabLanes.MEETING" else name.strip('"') for name in listed]
    assert shown == [*OF_A_LANE, OTHER] and meeting == MEETING


def test_a_part_that_has_not_changed_is_not_told_to_have():
    assert part_change("loading", 0.00501, 0.00502) == "loading stayed at 5.0 ms"
    assert part_change("loading", 0.005, 0.010) == "loading rose from 5.0 ms to 10 ms"
    assert part_change("loading", 0.010, 0.005) == "loading fell from 10 ms to 5.0 ms"
    assert part_change("waiting", 0.0, 0.0123) == "waiting took 12 ms"
