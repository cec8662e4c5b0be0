"""What ``fits`` tells of trainings that nobody here has run, beside what was published of them."""

import json
from statistics import median

import pytest
import torch
from soaking import sample

from benchmarks import published_memory
from benchmarks.published_memory import fit_of, with_fit
from benchmarks.published_networks import NETWORKS
from d2lmgpu.memory import cards
from d2lmgpu.torch.memory import fits

ROWS = published_memory.rows()
RECORDED = json.loads(published_memory.PATH.read_text(encoding="utf-8"))["rows"]
FIGURES = [row for row in ROWS if row["counter"] in published_memory.FIGURES]


def test_half_of_the_figures_are_within_a_twentieth_and_nearly_all_within_a_fifth():
    errors = [row["error"] for row in RECORDED if "error" in row]
    assert len(errors) == len(FIGURES)
    sizes = sorted(map(abs, errors))
    assert median(sizes) < 0.05
    assert sum(size < cards.MISS for size in sizes) >= 0.9 * len(sizes)
    assert max(errors) < 0.02, "what is told is too low, if anything"


def test_no_verdict_is_wrong_and_one_is_left_open():
    verdicts = [row for row in RECORDED if "verdict" in row]
    left_open = [row for row in verdicts if row["verdict"] == cards.OPEN]
    assert [(row["name"], row["batch_size"]) for row in left_open] == [("simclr", "512")]
    assert all(row["verdict"] == row["right"] for row in verdicts if row not in left_open)


def test_the_record_has_each_row():
    assert [{key: row[key] for key in ROWS[0]} for row in RECORDED] == ROWS


@pytest.mark.parametrize(
    "number", sample([5, 13, 20, 27, 41], range(len(ROWS))), ids=lambda n: f"{ROWS[n]['name']}-{n}"
)
def test_what_is_told_now_is_recorded(number):
    now, recorded = (
        published_memory.classes([row]) for row in (with_fit(ROWS[number]), RECORDED[number])
    )
    assert published_memory.worse(recorded, now) == []


def test_a_class_that_becomes_worse_is_told():
    row = {"name": "x", "counter": "reserved"}
    verdict = {"name": "y", "counter": "enough", "right": "fits"}
    before = [row | {"error": -0.05}, row | {"error": 0.03}, verdict | {"verdict": "fits"}]
    same = [row | {"error": 0.05}, row | {"error": -0.03}, verdict | {"verdict": "fits"}]
    further = [row | {"error": 0.05}, row | {"error": -0.04}, verdict | {"verdict": "fits"}]
    wrong = [*before[:2], verdict | {"verdict": "cannot be told"}]
    bad = [published_memory.classes(rows) for rows in (before, same, further, wrong)]
    assert published_memory.worse(bad[0], bad[1]) == []
    assert [line.split(":")[0] for line in published_memory.worse(bad[0], bad[2])] == [
        "x, reserved"
    ]
    assert [line.split(":")[0] for line in published_memory.worse(bad[0], bad[3])] == [
        "y, verdicts"
    ]


def test_a_rank_of_ddp_has_the_gradients_twice():
    given = NETWORKS["tsn"][:4]
    alone, rank = (fits(*given, 2, devices=devices) for devices in (1, 8))
    gradients = 4 * sum(p.numel() for p in NETWORKS["tsn"][0]().parameters())
    assert (alone.parts["buckets"], rank.parts["buckets"]) == (0, gradients)
    assert rank.peak - alone.peak == gradients


def test_words_of_a_card():
    fit = fit_of("mobilenet", 32, "float32")
    assert str(fit.on("T4")).startswith("fits: 2.6 to 3.9 GiB, modelled, of the 14.6")
    with pytest.raises(ValueError, match=r"^card is 'T5': give one of K80, .*, T4, "):
        fit.on("T5")
    assert torch.get_default_dtype() is torch.float32
