"""Runs side by side: medians, spreads and speedups against NumPy, and what must stay empty."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.lab.words import table_texts
from d2lmgpu.records import compare


def run(num_gpus=1, speed=100.0, sharing=None, status="finished", **others):
    sharing = sharing or ("one device" if num_gpus == 1 else "in parallel")
    settings = {
        "train": "PyTorch",
        "version": "a",
        "batch_size": 256,
        "lr": 0.1,
        "num_epochs": None,
        "seconds_per_epoch": 2.0,
        "accuracy": 0.7,
        "started": "now",
        "message": "Finished.",
    } | others
    return compare.Trial(
        num_gpus=num_gpus, sharing=sharing, status=status, samples_per_second=speed, **settings
    )


speeds = st.lists(st.floats(1, 1e6), min_size=1, max_size=7)


@given(speeds, speeds, st.integers(2, 16))
def test_speedup_and_efficiency_are_those_of_the_medians(single, many, k):
    rows = compare.rows([run(speed=s) for s in single] + [run(k, s) for s in many])
    base, row = rows
    assert (base.repeats, row.repeats) == (len(single), len(many))
    assert (base.speedup, base.efficiency) == (1, None), "over itself there is no efficiency"
    assert row.speedup == pytest.approx(np.median(many) / np.median(single))
    assert row.efficiency == pytest.approx(np.median(many) / np.median(single) / k)
    spread = row.samples_per_second
    assert (spread.low, spread.high) == (min(many), max(many))


def test_the_reader_picks_the_baseline():
    runs = [run(4, 400.0), run(2, 150.0), run(1, 100.0)]
    assert [row.speedup for row in compare.rows(runs)] == [4, 1.5, 1]
    speedups = [row.speedup for row in compare.rows(runs, baseline=2)]
    assert speedups == pytest.approx([8 / 3, 1, 2 / 3])
    assert [row.efficiency for row in compare.rows(runs, baseline=1)] == [None, 0.75, 1]


def test_simulated_stopped_and_failed_runs_have_no_speedup_and_are_no_baseline():
    runs = [
        run(1, 100.0, "simulated"),
        run(8, 900.0, "simulated"),
        run(2, None, status="stopped"),
        run(2, None, status="failed"),
        run(2, 150.0),
    ]
    for baseline, speedup in ((None, None), (5, 1), (1, None), (2, None), (3, None), (99, None)):
        rows = compare.rows(runs, baseline)
        assert [row.speedup for row in rows] == [None, None, None, None, speedup]
    assert compare.rows(runs[:4])[0].speedup is None
    assert compare.rows([]) == []


def test_another_setting_or_another_code_is_another_row():
    base = run()
    others = [run(2), run(lr=0.2), run(batch_size=512), run(num_epochs=3), run(version="b")]
    assert [row.repeats for row in compare.rows([base, *others, base])] == [2, 1, 1, 1, 1, 1]


def test_csv_has_every_run_and_says_what_was_simulated():
    runs = [run(), run(), run(2, 190.0), run(16, 90.0, "simulated"), run(2, None, status="failed")]
    lines = list(csv.DictReader(io.StringIO(compare.to_csv(runs))))
    assert [line["timing"] for line in lines][:4] == ["measured"] * 3 + ["simulated"]
    assert [line["row"] for line in lines] == ["1", "1", "2", "3", "4"]
    assert float(lines[2]["median_speedup"]) == 1.9
    assert [line["median_speedup"] for line in lines][3:] == ["", ""]
    assert [line["status"] for line in lines][-1] == "failed"


def test_the_shown_table_says_measured_and_simulated_in_words():
    runs = [run(), run(speed=200.0), run(4, 80.0, "simulated"), run(2, None, status="stopped")]
    columns, lines, _ = table_texts(compare.rows(runs))
    assert lines[0]["Samples/s"] == "150 (100–200)"
    assert [line["Timing"] for line in lines] == ["measured", "simulated", "stopped"]
    assert "Training" not in columns and "Code" not in columns
    columns, lines, _ = table_texts(compare.rows([*runs, run(train="<b>", version="b")]))
    assert "Training" in columns and "Code" not in columns, "each has one version"
    columns, lines, _ = table_texts(compare.rows([*runs, run(version="b")]))
    assert [line["Code"] for line in lines] == 3 * ["version 1"] + ["version 2"]


def test_an_unsteady_run_tells_no_time_where_a_steady_repeat_does():
    noisy = {"unsteady": "other programs kept 1.5 of 2 cores busy"}
    table = compare.rows([run(1, 100.0), run(2, 70.0, **noisy), run(2, 180.0)])
    assert table[1].samples_per_second.median == 180 and table[1].speedup == 1.8
    assert table[1].explained and "1 unsteady" in table_texts(table)[1][1]["Runs"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_row_of_unsteady_runs_and_one_that_refers_to_it_explain_no_speedup(which):
    runs = [run(1, 100.0), run(2, 180.0)]
    runs[which].unsteady = "other programs kept 1.5 of 2 cores busy"
    row, lines = compare.rows(runs)[1], table_texts(compare.rows(runs))[1]
    assert not row.explained and f"row {which + 1} was unsteady" in row.remark
    assert lines[1]["Speedup"] == lines[1]["Efficiency"] == "–"
    assert ["unsteady" in line["Samples/s"] for line in lines] == [which == 0, which == 1]
    line = list(csv.DictReader(io.StringIO(compare.to_csv(runs))))[which]
    assert "1.5 of 2 cores" in line["unsteady"]


def test_runs_that_took_turns_met_the_same_machine():
    trials = recorded(1, [100.0] * 5, unsteady="x") + recorded(2, [180.0] * 5, unsteady="x")
    row = compare.rows(trials, pairs=5)[1]
    assert row.explained and row.speedup == pytest.approx(1.8)


def recorded(num_gpus, speeds, **others):
    """Trials of a record: one a round."""
    return [run(num_gpus, speed, round=i, **others) for i, speed in enumerate(speeds)]


def test_a_speedup_is_over_the_same_batch_where_there_is_one():
    table = compare.rows(
        [
            run(1, 100.0, batch_size=128),
            run(1, 160.0, batch_size=512),
            run(2, 300.0, batch_size=512),
        ]
    )
    assert [(row.over, row.scaling) for row in table] == [(1, None), (2, None), (2, "strong")]
    assert table[2].speedup == 300 / 160


def test_the_same_batch_on_each_device_is_weak_scaling_and_called_so():
    table = compare.rows([run(1, 100.0, batch_size=64), run(4, 360.0, batch_size=256)])
    assert (table[1].over, table[1].scaling, table[1].speedup) == (1, "weak", 3.6)
    assert "weak" in table_texts(table)[1][1]["Over"]
    assert (
        list(csv.DictReader(io.StringIO(compare.to_csv([t.trial for t in table]))))[1]["scaling"]
        == "weak"
    )


@pytest.mark.parametrize(
    "other, word",
    [
        ({"train": "MXNet"}, "training"),
        ({"version": "b"}, "code"),
        ({"num_epochs": 9}, "epochs"),
        ({"batch_size": 100}, "batch"),
    ],
)
def test_what_is_not_comparable_gives_no_speedup_and_says_why(other, word):
    runs = [run(1, 100.0), run(2, 150.0, **other)]
    chosen = compare.rows(runs, baseline=1)
    assert (chosen[1].speedup, chosen[1].efficiency, chosen[1].over) == (None, None, None)
    assert word in chosen[1].remark
    assert chosen[1].remark in " ".join(table_texts(chosen, baseline=1)[2])
    assert word in compare.to_csv(runs, baseline=1).splitlines()[2]
    alone = compare.rows(runs)[1]
    assert (alone.speedup, alone.over) == (None, None) and alone.alone, "not over itself"
    shown = table_texts(compare.rows(runs))[1][1]
    assert [shown[name] for name in ("Speedup", "Efficiency", "Over")] == ["–", "–", ""]


def test_two_frameworks_on_one_device_are_not_compared():
    other = [run(1, 100.0, train="MXNet"), run(2, 180.0, train="MXNet")]
    table = compare.rows([run(1, 200.0), *other])
    assert [row.speedup for row in table] == [1, 1, 1.8]
    assert [row.over for row in table] == [1, 2, 2]


def test_another_learning_rate_is_comparable_and_the_same_one_is_preferred():
    table = compare.rows([run(lr=0.1), run(lr=0.2, speed=120.0), run(2, 180.0, lr=0.2)])
    assert (table[2].over, table[2].speedup) == (2, 1.5)
    assert compare.rows([run(lr=0.1), run(2, 180.0, lr=0.2)])[1].speedup == 1.8


def test_more_than_a_device_can_give_is_marked_and_never_shown_as_a_speedup():
    trials = [run(1, 100.0), run(2, 246.0)]
    row = compare.rows(trials)[1]
    assert not row.explained and "not explained" in row.remark
    _, lines, remarks = table_texts(compare.rows(trials))
    assert "2.46" not in str(lines) and "123" not in str(lines)
    assert row.remark in " ".join(remarks)
    (line,) = list(csv.DictReader(io.StringIO(compare.to_csv(trials))))[1:]
    assert line["median_speedup"] == line["median_efficiency"] == ""
    assert line["remark"] == row.remark
    assert compare.rows([run(1, 100.0), run(2, 209.0)])[1].explained, "up to 105 % is noise"


def test_a_recorded_speedup_is_the_median_of_interleaved_pairs():
    single, double = [100.0, 50.0, 100.0, 80.0, 90.0], [180.0, 100.0, 150.0, 160.0, 171.0]
    table = compare.rows(recorded(1, single) + recorded(2, double), pairs=5)
    assert table[1].ratios == pytest.approx([1.8, 2.0, 1.5, 2.0, 1.9])
    assert table[1].speedup == pytest.approx(1.9), "not 160 / 90, the ratio of the medians"


@pytest.mark.parametrize("singles, doubles", [(1, 3), (4, 4), (5, 4), (0, 5)])
def test_without_five_pairs_a_record_gives_no_speedup(singles, doubles):
    trials = recorded(1, [100.0] * singles) + recorded(2, [228.0] * doubles)
    row = compare.rows(trials, pairs=5)[-1]
    if singles:
        assert (row.speedup, row.efficiency) == (None, None) and "pairs" in row.remark
    else:
        assert (row.speedup, row.over) == (None, None)


def test_old_runs_that_were_not_interleaved_give_no_speedup():
    trials = [run(1, 100.0)] * 5 + [run(2, 228.0)] * 5
    assert compare.rows(trials, pairs=5)[1].speedup is None
