"""The vectors of ``tests/memory/peaks.csv`` are what ``fits`` says now, so the page's sums are."""

import csv
from pathlib import Path

import pytest
from soaking import sample

from benchmarks.peak_sums import VECTORS, told

PATH = Path(__file__).parents[1] / "memory" / "peaks.csv"
QUICK = [VECTORS[5], VECTORS[20]]  # a language model and the U-Net, on one device


@pytest.mark.parametrize("vector", sample(QUICK, VECTORS), ids=lambda v: f"{v[0]} {v[1]} {v[2:]}")
def test_a_vector_is_what_fits_says(vector):
    with open(PATH, encoding="utf-8", newline="") as file:
        row = list(csv.DictReader(file))[VECTORS.index(vector)]
    fit = told(*vector)
    assert (fit.peak, fit.least, fit.reserved) == tuple(
        int(row[name]) for name in ("peak", "least", "reserved")
    )
