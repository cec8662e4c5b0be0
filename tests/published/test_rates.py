"""Published rates of one GPU: what was learned from one source, and how it tells all others."""

import pytest

from benchmarks import rates
from d2lmgpu.costmodel import gpus
from d2lmgpu.costmodel.gpus import BANDWIDTH, FORMATS, GPUS, HIGH, LOW, PEAK, expected_rate

LEARNED, KEPT = rates.split(rates.pairs())


def test_no_source_is_in_both_halves_and_each_gpu_has_a_published_rate():
    assert not {pair.source for pair in LEARNED} & {pair.source for pair in KEPT}
    assert {pair.measured_on for pair in LEARNED + KEPT} == {*GPUS}
    assert len({pair.network for pair in KEPT} - {pair.network for pair in LEARNED}) > 5


def test_what_is_known_is_learned_from_that_half():
    assert rates.learn(LEARNED) == pytest.approx([PEAK, BANDWIDTH, LOW, HIGH], abs=0.0006)


def test_peaks_alone_mislead_and_both_are_nearest():
    for half in (LEARNED, KEPT):
        now = rates.score(half)
        assert now["expected"] < now["bandwidths"] < now["peaks"]
        assert now["expected"] < now["peaks"] / 2


def test_of_the_pairs_that_were_not_used_eight_in_ten_are_inside():
    now = rates.score(KEPT)
    assert now["expected"] < 0.19 and now["inside"] >= 0.8
    assert rates.worse(KEPT) == []


@pytest.mark.parametrize("name, wrong", [("PEAK", 1), ("HIGH", 1.1)])
def test_what_gets_worse_is_told(monkeypatch, name, wrong):
    monkeypatch.setattr(rates, name, wrong)
    assert rates.worse(KEPT) == [*rates.AT_FIRST]


def test_there_and_back_it_is_the_rate():
    for format in FORMATS:
        there = expected_rate(100, "V100", "RTX 4090", format).middle
        assert expected_rate(there, "RTX 4090", "V100", format).middle == pytest.approx(100)
    rate = expected_rate(100, "V100", "V100", "tf32")
    assert rate.low == rate.middle == rate.high == 100


def test_a_gpu_without_tf32_multiplies_in_float32():
    assert GPUS["V100"].peaks["tf32"] == GPUS["V100"].peaks["float32"] == 15.7e12
    assert GPUS["A100 40GB"].peaks["tf32"] == 8 * GPUS["A100 40GB"].peaks["float32"]


def test_the_range_is_around_what_is_expected():
    rate = expected_rate(76438, "V100", "A100 40GB", "16 bit")
    assert rate.middle == pytest.approx(76438 * (312 / 125) ** PEAK * (1555 / 900) ** BANDWIDTH)
    assert (rate.low / rate.middle, rate.high / rate.middle) == pytest.approx((LOW, HIGH))


def test_every_number_has_a_source():
    assert all("NVIDIA" in gpu.source for gpu in gpus.GPUS.values())
