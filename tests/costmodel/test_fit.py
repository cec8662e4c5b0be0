"""Published numbers: which rows feed a fit, and how far the predictions of the others are off."""

from dataclasses import replace

import numpy as np
import pytest

from d2lmgpu.costmodel import fit, published_rates
from d2lmgpu.costmodel.fit import CURVES, DDP, fit_curve, fit_small, predict_all, predict_curve
from d2lmgpu.costmodel.model import PRESETS
from d2lmgpu.costmodel.published_rates import ROWS, rows, tables

SMALL = [table for table in tables() if table not in CURVES]
MODELS = [
    (table, model) for table in CURVES for model in dict.fromkeys(r.model for r in rows(table))
]


def all_fits():
    return [fit_small(table) for table in SMALL] + [fit_curve(*m).tolist() for m in MODELS]


def changed(monkeypatch, change):
    """All fits, with every row for which `change` holds made a tenth faster."""
    new = [replace(row, rate=1.1 * row.rate) if change(row) else row for row in ROWS]
    with monkeypatch.context() as patch:
        patch.setattr(published_rates, "ROWS", new)
        return all_fits()


def test_a_row_that_is_predicted_never_feeds_a_fit(monkeypatch):
    assert changed(monkeypatch, lambda row: row.use != "fit") == all_fits()


@pytest.mark.parametrize("row", rows("MXNet 2019", "fit") + rows("MXNet EC2", "fit")[:1])
def test_a_row_of_the_fit_does_feed_it(monkeypatch, row):
    assert changed(monkeypatch, lambda other: other is row) != all_fits()


def test_only_one_gpu_rows_or_8_to_32_devices_are_for_fitting():
    for row in ROWS:
        if row.use == "fit":
            assert 8 <= row.k <= 32 if row.table in CURVES else row.k == 1
        assert row.use in published_rates.USES
        assert len(row.source) > 10 and len(row.hardware) > 3


def test_published_numbers_as_printed():
    seconds = {(r.model, r.k): published_rates.FASHION_MNIST / r.rate for r in rows("MXNet 2019")}
    assert seconds[("lenet", 1)] == pytest.approx(1.8) and seconds[("lenet", 2)] == pytest.approx(
        2.5
    )
    rates = {r.k: r.rate / r.k for r in rows("Ultra-Scale")}
    assert rates == {8: 40150, 16: 37610, 32: 35368, 64: 31112, 128: 26446, 256: 15700}


def test_of_d2l_s_loops_only_lenet_s_waits_after_every_batch():
    for table in SMALL:
        if table not in DDP:  # no host time there
            for model, work in fit_small(table).items():
                assert work.waits == (model == "lenet"), (table, model)


def test_one_gpu_rows_come_out_as_they_went_in():
    for p in predict_all():
        if p.row.use == "fit" and p.row.table in SMALL:
            assert p.error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("preset", ["V100 NVLink", "V100 PCIe"])
def test_v100_rows_of_2019_within_25_percent_and_on_the_right_side(monkeypatch, preset):
    monkeypatch.setitem(fit.MACHINES, "MXNet 2019", preset)
    predictions = fit.predict_small("MXNet 2019")
    held_out = [p for p in predictions if p.row.use == "held out"]
    assert {p.row.model for p in held_out} == {"lenet", "resnet18"}
    for p in held_out:
        assert abs(p.error) < 0.25
        single = next(q for q in predictions if q.row.model == p.row.model and q.row.k == 1)
        assert (
            (p.rate > single.rate) == (p.row.rate > single.row.rate) == (p.row.model == "resnet18")
        )


def test_d2l_neu_on_2_and_4_gpus_within_7_percent_and_on_both_sides():
    held_out = [
        p
        for table in ("d2l-neu weak", "d2l-neu strong")
        for p in fit.predict_small(table)
        if p.row.use == "held out"
    ]
    assert [p.row.k for p in held_out] == [2, 4, 2, 4]
    assert [round(100 * p.error) for p in held_out] == [3, -4, 3, -7]


def test_eight_gpus_of_a_dgx_within_17_percent_and_too_hopeful_each_time():
    """NVIDIA's own tables: 7.78, 6.93, 7.73 and 6.73 times one GPU."""
    tables = ("DGX-1 float32", "DGX-1 mixed", "DGX A100 tf32", "DGX A100 mixed")
    held_out = [p for t in tables for p in fit.predict_small(t) if p.row.use == "held out"]
    assert all(-0.17 < p.error < 0 for p in held_out) and len(held_out) == 4


def test_large_curves_within_10_points_but_for_the_misses_that_the_course_names():
    predictions = [p for table, model in MODELS for p in predict_curve(table, model)]
    held_out = [p for p in predictions if p.row.use == "held out"]
    assert len(held_out) == 15 and min(p.row.k for p in held_out) == 64
    missed = {
        (p.row.table, p.row.model, p.row.k)
        for p in held_out
        if abs(p.efficiency - p.published_efficiency) > 0.10
    }
    assert missed == {
        ("TensorFlow EC2", "resnet-152", 64),
        ("Ultra-Scale", "llm", 128),
        ("Ultra-Scale", "llm", 256),
    }


def test_a_curve_that_the_model_can_make_is_found_again(monkeypatch):
    factors = np.array([0.5, 1.5, 0.02])
    new = []
    for row in rows("MXNet EC2"):
        seconds = fit.curve_terms(row.table, row.model, row.k) @ factors
        new.append(replace(row, rate=row.batch_size / seconds))
    monkeypatch.setattr(published_rates, "ROWS", new)
    assert fit_curve("MXNet EC2", "alexnet") == pytest.approx(factors)
    assert all(abs(p.error) < 1e-9 for p in predict_curve("MXNet EC2", "alexnet"))


def test_factors_are_never_negative():
    for model in MODELS:
        assert (fit_curve(*model) >= 0).all()


def test_every_table_names_a_preset():
    assert all(fit.MACHINES[table] in PRESETS for table in tables())


def test_single_points_are_predicted_from_presets_alone():
    for _, _, _, value, modelled in fit.predict_efficiencies():
        assert abs(modelled - value) < 0.10


def test_the_command_prints_every_row(capsys):
    fit.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(predict_all()) + len(published_rates.EFFICIENCIES)
    assert any("Ultra-Scale" in line and "0.391, modelled 0.747" in line for line in lines)
