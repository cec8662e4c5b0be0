"""Published speedups: what was learned from one half, and how well it tells the other."""

import numpy as np
import pytest

from benchmarks import speedups
from d2lmgpu.costmodel.speedups import DELAYS
from d2lmgpu.records import store

LEARNED, KEPT = speedups.split(speedups.published())
NOW, RECORD = speedups.figures(), store.read(speedups.RECORD)


def test_no_publication_and_no_table_is_in_both_halves():
    for name in ("publication", "table"):
        assert not {getattr(row, name) for row in LEARNED} & {getattr(row, name) for row in KEPT}
    assert {row.links for row in LEARNED} == {row.links for row in KEPT} == set(DELAYS)
    assert len(LEARNED) + len(KEPT) == len(speedups.published()) > 600


def test_the_split_does_not_depend_on_the_order_of_the_rows():
    backwards = speedups.split(speedups.published()[::-1])
    assert [set(map(repr, half)) for half in backwards] == [
        set(map(repr, half)) for half in (LEARNED, KEPT)
    ]


def test_the_delays_are_those_of_the_half_that_was_learned_from():
    assert speedups.delays(LEARNED) == DELAYS


def test_the_form_is_the_best_of_those_compared_there():
    for by in ("table", "publication"):
        errors = {name: of[by] for name, of in NOW["left_out"].items()}
        assert speedups.FORMS[min(errors, key=errors.get)] is speedups.CHOSEN


def test_no_kind_of_links_got_worse_than_recorded():
    assert speedups.worse(NOW, RECORD) == []


def test_the_record_is_what_the_rows_give_today():
    for half in ("learned", "kept", "other_way_round"):
        assert NOW[half].keys() == RECORD[half].keys()
        for kind, of in NOW[half].items():
            assert of == pytest.approx(RECORD[half][kind])


@pytest.mark.parametrize("kind", DELAYS)
@pytest.mark.parametrize("what", ["a middle that is further off", "a range that is too narrow"])
def test_what_got_worse_is_told(kind, what):
    low, middle, high = DELAYS[kind].low, DELAYS[kind].middle, DELAYS[kind].high
    wrong = (low, high, high) if what.startswith("a middle") else (middle, middle, middle)
    scores = speedups.scores(KEPT, DELAYS | {kind: speedups.Range(*wrong)})
    worse = speedups.worse({"kept": scores}, RECORD)
    assert kind in worse and set(worse) <= {kind, *speedups.GROUPS}


def test_on_the_rows_that_were_kept_it_is_nearer_than_k_times_one():
    nvlink, every = NOW["kept"]["NVLink and NVSwitch"], NOW["kept"]["all"]
    assert nvlink["expected"] <= min(0.08, 2 / 3 * nvlink["k times one"])
    assert every["expected"] <= 0.07 < every["k times one"]
    assert every["inside"] >= 0.75


def test_a_quantile_counts_each_table_once():
    values = np.random.default_rng(0).normal(size=40)
    each = speedups.quantile(values, range(40), 0.3)
    assert each == pytest.approx(np.quantile(values, 0.3, method="hazen"))
    # a table of many equal rows is one row
    many = speedups.quantile([1.0, 2.0, *[3.0] * 100], ["a", "b", *["c"] * 100], 0.5)
    assert many == pytest.approx(2.0)
