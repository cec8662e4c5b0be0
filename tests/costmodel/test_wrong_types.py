"""Whatever is given to the cost model: a right answer, or a CostError that names it, at once."""

import math
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmgpu.costmodel import fit, layouts, measure, published_rates
from d2lmgpu.costmodel.forecast import predict
from d2lmgpu.costmodel.gpus import expected_rate
from d2lmgpu.costmodel.least_squares import fit_line
from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.costmodel.model import (
    PRESETS,
    CostError,
    Link,
    Machine,
    Work,
    best_num_gpus,
    exchange_seconds,
    exposed_seconds,
    machine_seconds,
    step,
    wait_samples,
    wait_seconds,
)
from d2lmgpu.costmodel.speedups import expected_speedup

LINK, V100, WORK = Link(1e-6, 1e9), PRESETS["V100 PCIe"], Work(1e6, 1e-3)
CALIBRATION = Calibration(
    "torch", "threads", "naive", 2, 1e10, 1e-4, 1e9, ((1, 1.0, 1.0), (2, 2.0, 1.1)), 0.02, 0.03, 5.0
)
MESH, GPT = layouts.Layout(2, 2, 1, 1, 2), layouts.Sizes(64, 2, 64, 32)
ROWS = layouts.Training(8, 2)
SUMS = layouts.Exchange("all_reduce", "tp", 4, 1e6)
MACHINE = {f.name: getattr(V100, f.name) for f in fields(Machine)}


def build(kind, given):
    """A function that makes a ``kind`` from positional values of the fields ``given``."""
    return lambda *values: kind(**dict(zip(given, values, strict=True)))


CALLS = {  # a call that is right
    "Link": (Link, 1e-6, 1e9),
    "Work": (
        build(Work, [f.name for f in fields(Work)]),
        *(getattr(WORK, f.name) for f in fields(Work)),
    ),
    "of_parameters": (Work.of_parameters, 1e6, 1e-3, 16),
    "expected_speedup": (expected_speedup, "NVLink", 2),
    "expected_rate": (expected_rate, 100.0, "V100", "A100 40GB", "16 bit"),
    "Machine": (build(Machine, MACHINE), *MACHINE.values()),
    "slowed": (V100.slowed, 2),
    "exchange_seconds": (exchange_seconds, "ring", 4, 1e6, LINK),
    "machine_seconds": (machine_seconds, V100, 8, 1e6, "naive"),
    "exposed_seconds": (exposed_seconds, 1.0, 2.0, 3, True),
    "wait_seconds": (wait_seconds, 4, 0.1),
    "wait_samples": (wait_samples, 4, 0.1, 10, 0),
    "step": (step, WORK, V100, 4, 64),
    "best_num_gpus": (best_num_gpus, WORK, V100, 64, 4),
    "fit_line": (fit_line, [1, 2, 4], [1.0, 2.0, 3.0]),
    "calibrate": (measure.calibrate, "torch", "threads"),
    "predict": (predict, CALIBRATION, WORK, 2, 64, 0.0),
    "Layout": (layouts.Layout, 2, 2, 1, 2, 2),
    "Sizes": (layouts.Sizes, 64, 2, 64, 32, False, 2),
    "Training": (layouts.Training, 8, 2, False, 1, True, True, 2, 4, 2),
    "factorings": (layouts.factorings, 12, 8, 2),
    "micro_batches": (layouts.micro_batches, MESH, ROWS),
    "parameters": (layouts.parameters, GPT, MESH, ROWS, 0),
    "memory": (layouts.memory, GPT, MESH, ROWS),
    "exchanges": (layouts.exchanges, GPT, MESH, ROWS, 0),
    "along": (layouts.along, V100, MESH, "tp"),
    "seconds_of": (layouts.seconds_of, SUMS, MESH, V100),
    "layouts.step": (layouts.step, GPT, MESH, ROWS, V100, 0.5),
    "quickest": (layouts.quickest, GPT, MESH, 8, V100, "T4"),
    "considered": (layouts.considered, GPT, MESH, 8, V100, "T4"),
    "ranked": (layouts.ranked, GPT, 8, 8, V100, "T4", 2, 2),
    "band": (layouts.band, layouts.PUBLISHED[:2]),
    "rows": (published_rates.rows, "MXNet 2019"),
    "fit_small": (fit.fit_small, "MXNet 2019"),
    "predict_small": (fit.predict_small, "MXNet 2019"),
    "curve_terms": (fit.curve_terms, "MXNet EC2", "alexnet", 8),
    "fit_curve": (fit.fit_curve, "MXNet EC2", "alexnet"),
    "predict_curve": (fit.predict_curve, "MXNet EC2", "alexnet"),
}
PLACES = [(name, place) for name, (_, *values) in CALLS.items() for place in range(len(values))]

NUMBERS = st.one_of(
    st.integers(-3, 2000),
    st.floats(),
    st.booleans(),
    st.fractions(max_denominator=9),
    st.sampled_from([np.float32(2), np.int64(3), np.float64("nan"), 10**15, 1e-300, 1e300]),
)
STRANGE = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.complex_numbers(),
    st.just(object),
    st.lists(st.one_of(st.integers(-1, 3), st.text(max_size=1)), max_size=3),
    st.dictionaries(st.integers(0, 2), st.floats(), max_size=2),
    st.sampled_from(
        [
            LINK,
            WORK,
            V100,
            CALIBRATION,
            Decimal(1),
            timedelta(1),
            iter([1]),
            len,
            np.array([1.0, 2.0]),
            np.zeros((2, 2)),
            [[1, 2], [3]],
            ((2, 1, 1),),
        ]
    ),
)


def sound(answer) -> bool:
    """Whether an answer can be right: no number in it is NaN or negative, nothing is missing."""
    if isinstance(answer, dict):
        return all(map(sound, answer.values()))
    if isinstance(answer, list | tuple | np.ndarray):
        return all(map(sound, answer))
    if hasattr(answer, "__dataclass_fields__"):
        return all(sound(getattr(answer, f.name)) for f in fields(answer))
    return answer is None or isinstance(answer, str) or answer >= 0


def kinds(right):
    """Types that may stand where ``right`` does."""
    if isinstance(right, int | float) and not isinstance(right, bool):
        return int | float | Fraction | np.number
    if isinstance(right, list | tuple):
        return object  # sequences are told apart by what is in them
    return type(right)


@settings(max_examples=40, deadline=5000)  # a second, on a machine with other things to do
@given(st.data())
@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_right_answer_or_an_error_of_ours(name, place, data):
    wrong = data.draw(st.one_of(NUMBERS, STRANGE))
    fn, *values = CALLS[name]
    allowed = kinds(values[place])
    values[place] = wrong
    try:
        answer = fn(*values)
    except CostError as error:
        assert len(str(error)) > 20
    else:
        assert isinstance(wrong, allowed) and sound(answer)


@pytest.mark.parametrize(
    "points",
    [
        (),
        ((2, 1, 1),),
        ((1, 1, 1), (1, 2, 2)),
        ((1, 1, 1), (4, 2, 2), (2, 1.5, 1.5)),
        ((1, 1, 1), (2.5, 1, 1)),
        ((1, 1),),
        (1, 1, 1),
        ((1, 1, 0),),
        ((1, 1, math.nan),),
        7,
    ],
)
def test_a_slowdown_that_does_not_rise_from_one_device_is_refused(points):
    with pytest.raises(CostError, match="slowdown"):
        replace(V100, slowdown=points)


def test_a_line_needs_a_time_for_each_x():
    with pytest.raises(CostError, match="No line"):
        fit_line([1, 2, 3], [1, 2])


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 60))
def test_what_remains_is_what_comes_out_bucket_by_bucket(exchange, backward, num_buckets):
    sent = 0.0
    for bucket in range(1, num_buckets + 1):
        sent = max(sent, backward * bucket / num_buckets) + exchange / num_buckets
    exposed = exposed_seconds(exchange, backward, num_buckets)
    assert exposed == pytest.approx(sent - backward, rel=1e-9, abs=1e-9)


def test_a_bucket_of_one_byte_is_as_quick_to_model_as_any():
    tiny = step(Work(1e12, 1e-3, bucket_bytes=1), V100, 8, 64)  # as many buckets as bytes
    assert tiny.exposed == pytest.approx(tiny.exchange - 2 / 3 * tiny.compute)


@pytest.mark.parametrize("k", [99, 100, 101, 1000, 10**5])
def test_the_wait_of_many_devices_is_the_harmonic_number(k):
    assert wait_seconds(k, 1) == pytest.approx(math.fsum(1 / i for i in range(1, k + 1)), rel=1e-12)


def test_nobody_is_late_by_minus_nothing_either():
    assert not wait_samples(4, -0.0, 10).any()


def test_a_million_million_devices_wait_at_once():
    assert wait_seconds(10**12, 1) == pytest.approx(math.log(10**12) + 0.5772156649, rel=1e-9)
