"""What ``fits`` tells of trainings that nobody here has run, beside what was published of them."""

import csv
from functools import cache
from pathlib import Path
from statistics import median

import pytest
import torch
from published_networks import NETWORKS

from d2lmgpu.memory import cards
from d2lmgpu.torch.memory import fits

BYTES = {"bytes": 1, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
with open(Path(__file__).with_name("published_memory.csv"), newline="") as file:
    ROWS = list(csv.DictReader(file))
FIGURES = [row for row in ROWS if row["counter"] in ("allocated", "reserved")]
BOUNDS = [row for row in ROWS if row not in FIGURES]


@cache
def fit_of(name, batch_size, precision):
    *given, devices = NETWORKS[name]
    return fits(*given, int(batch_size), precision, devices)


def error(row):
    fit = fit_of(row["name"], row["batch_size"], row["precision"])
    return getattr(fit, row["counter"]) / (float(row["figure"]) * BYTES[row["unit"]]) - 1


def test_half_of_the_figures_are_within_a_twentieth_and_nearly_all_within_a_fifth():
    errors = {(*list(row.values())[:3], row["counter"]): error(row) for row in FIGURES}
    print(*(f"{e:+.1%} {' '.join(key)}" for key, e in sorted(errors.items(), key=str)), sep="\n")
    sizes = sorted(map(abs, errors.values()))
    assert median(sizes) < 0.05
    assert sum(size < cards.MISS for size in sizes) >= 0.9 * len(sizes)
    assert max(errors.values()) < 0.02, "what is told is too low, if anything"


@pytest.mark.parametrize("row", BOUNDS, ids=lambda row: f"{row['name']} {row['batch_size']}")
def test_nothing_is_said_to_fit_that_did_not(row, monkeypatch):
    total = int(float(row["figure"]) * BYTES[row["unit"]])
    monkeypatch.setitem(cards.CARDS, "theirs", cards.Card("theirs", total, row["source"]))
    answer = fit_of(row["name"], row["batch_size"], row["precision"]).on("theirs")
    right = {"enough": cards.FITS, "too little": cards.DOES_NOT}[row["counter"]]
    assert answer.verdict == right, answer


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
