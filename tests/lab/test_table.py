"""Runs side by side: medians, spreads and speedups against NumPy, and what must stay empty."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.lab import present, table


def run(num_gpus=1, speed=100.0, overlap=None, status="finished", **others):
    overlap = overlap or ("one device" if num_gpus == 1 else "in parallel")
    settings = {
        "train": "PyTorch", "version": "a", "batch_size": 256, "lr": 0.1, "num_epochs": None,
        "seconds_per_epoch": 2.0, "accuracy": 0.7, "started": "now", "message": "Finished.",
    } | others  # fmt: skip
    return table.Run(
        num_gpus=num_gpus, overlap=overlap, status=status, samples_per_second=speed, **settings
    )


speeds = st.lists(st.floats(1, 1e6), min_size=1, max_size=7)


@given(speeds, speeds, st.integers(2, 16))
def test_speedup_and_efficiency_are_those_of_the_medians(one, many, k):
    rows = table.rows([run(speed=s) for s in one] + [run(k, s) for s in many])
    base, row = rows
    assert (base.repeats, row.repeats) == (len(one), len(many))
    assert (base.speedup, base.efficiency) == (1, 1)
    assert row.speedup == pytest.approx(np.median(many) / np.median(one))
    assert row.efficiency == pytest.approx(np.median(many) / np.median(one) / k)
    spread = row.samples_per_second
    assert (spread.low, spread.high) == (min(many), max(many))


def test_the_reader_picks_the_baseline():
    runs = [run(4, 400.0), run(2, 150.0), run(1, 100.0)]
    assert [row.speedup for row in table.rows(runs)] == [4, 1.5, 1]
    assert [row.speedup for row in table.rows(runs, baseline=2)] == pytest.approx([8 / 3, 1, 2 / 3])
    assert [row.efficiency for row in table.rows(runs, baseline=1)] == [1, 0.75, 1]


def test_simulated_stopped_and_failed_runs_have_no_speedup_and_are_no_baseline():
    runs = [
        run(1, 100.0, "simulated"), run(8, 900.0, "simulated"), run(2, None, status="stopped"),
        run(2, None, status="failed"), run(2, 150.0),
    ]  # fmt: skip
    for baseline, speedup in ((None, 1), (5, 1), (1, None), (2, None), (3, None), (99, None)):
        rows = table.rows(runs, baseline)
        assert [row.speedup for row in rows] == [None, None, None, None, speedup]
    assert table.rows(runs[:4])[0].speedup is None
    assert table.rows([]) == []


def test_another_setting_or_another_code_is_another_row():
    base = run()
    others = [run(2), run(lr=0.2), run(batch_size=512), run(num_epochs=3), run(version="b")]
    assert [row.repeats for row in table.rows([base, *others, base])] == [2, 1, 1, 1, 1, 1]


def test_csv_has_every_run_and_says_what_was_simulated():
    runs = [run(), run(), run(2, 190.0), run(16, 90.0, "simulated"), run(2, None, status="failed")]
    lines = list(csv.DictReader(io.StringIO(table.to_csv(runs))))
    assert [line["timing"] for line in lines][:4] == ["measured"] * 3 + ["simulated"]
    assert [line["row"] for line in lines] == ["1", "1", "2", "3", "4"]
    assert float(lines[2]["median_speedup"]) == 1.9
    assert [line["median_speedup"] for line in lines][3:] == ["", ""]
    assert [line["status"] for line in lines][-1] == "failed"


def test_the_shown_table_says_measured_and_simulated_in_words():
    runs = [run(), run(speed=200.0), run(4, 80.0, "simulated"), run(2, None, status="stopped")]
    html = present.table(table.rows(runs))
    assert "<td>150 (100–200)</td>" in html
    assert html.count("<td>measured</td>") == html.count("<td>simulated</td>") == 1
    assert "<td>stopped</td>" in html and "Training</th>" not in html and "Code</th>" not in html
    html = present.table(table.rows([*runs, run(train="<b>", version="b")]))
    assert "Training</th>" in html and "version 2" in html and "<b>" not in html
