"""The vectors of ``tests/memory/peaks.csv`` are what ``fits`` says now, so the page's sums are."""

import csv
from pathlib import Path

import pytest
from soaking import sample

from benchmarks.peak_sums import VECTORS, fit_of

PATH = Path(__file__).parents[1] / "memory" / "peaks.csv"
QUICK = [5, 20]  # a small language model and the U-Net, on one device


@pytest.mark.parametrize("i", sample(QUICK, range(len(VECTORS))))
def test_a_vector_is_what_fits_says(i):
    with open(PATH, encoding="utf-8", newline="") as file:
        row = [*csv.DictReader(file)][i]
    fit = fit_of(*VECTORS[i])
    assert (row["kind"], row["batch_size"]) == (VECTORS[i][0], str(VECTORS[i][-1]))
    expected = tuple(int(row[name]) for name in ("peak", "least", "reserved"))
    assert (fit.peak, fit.least, fit.reserved) == expected
