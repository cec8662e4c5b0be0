"""Calibration against times that are made up from known parameters, and torch's FLOP counter."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.costmodel import measure, probe
from d2lmgpu.costmodel.least_squares import fit_line
from d2lmgpu.costmodel.measure import Calibration, calibrate, slowest, summary
from d2lmgpu.costmodel.model import CostError, Link, Work, exchange_seconds, step

POSITIVE = st.floats(1e-6, 1e3)


def made_up(algorithm, most, latency, bandwidth, noise=(1.0,)):
    """What would be timed on devices of a known kind: 1 ms a step and 2 ms an image, or slower."""
    link, times = Link(latency, bandwidth), {}
    for k, fixed, example in [(1, 1, 1), (most, 3.0, 1.5)][: 1 + (most > 1)]:
        for n in (1, 65):
            seconds = 1e-3 * fixed + 2e-3 * (fixed + (n - 1) * example)
            times["compute", k, n] = [seconds * factor for factor in noise]
    for size in (4, 1000, 10**6) if most > 1 else ():
        seconds = exchange_seconds(algorithm, most, size, link)
        times["exchange", most, size] = [seconds * factor for factor in noise]
    return times


@given(POSITIVE, POSITIVE)
def test_a_line_is_found_again(a, b):
    xs = np.array([1.0, 3.0, 10.0])
    assert fit_line(xs, a + b * xs) == pytest.approx((a, b, 0), rel=1e-6, abs=1e-7)


@given(st.lists(POSITIVE, min_size=2, max_size=6))
def test_the_line_always_rises_and_no_scaling_makes_it_better(seconds):
    xs = np.arange(1, len(seconds) + 1)
    a, b, fit_error = fit_line(xs, seconds)

    def residual(a, b):
        return np.sum(((a + b * xs) / seconds - 1) ** 2)

    assert a >= 0 and b > 0
    assert fit_error == pytest.approx(np.max(np.abs((a + b * xs) / seconds - 1)))
    for scale in (0.99, 1.01):
        assert residual(a, b) <= residual(scale * a, b) * (1 + 1e-9) + 1e-12
        assert residual(a, b) <= residual(a, scale * b) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seconds", [[1, 0], [1, -1], [1, float("nan")]])
def test_times_must_be_above_zero(seconds):
    with pytest.raises(CostError, match="No line"):
        fit_line([1, 2], seconds)


def test_one_size_makes_no_line():
    with pytest.raises(CostError, match="No line"):
        fit_line([5, 5], [1, 1])


@pytest.mark.parametrize(("algorithm", "workers"), [("naive", "threads"), ("ring", "processes")])
@pytest.mark.parametrize("most", [2, 4])
def test_known_devices_are_found_again(algorithm, workers, most):
    result = summary("torch", workers, algorithm, made_up(algorithm, most, 2e-5, 3e9), 1.0)
    assert result.latency == pytest.approx(2e-5) and result.bandwidth == pytest.approx(3e9)
    assert result.slowdown == ((1, 1, 1), (most, pytest.approx(3), pytest.approx(1.5)))
    assert result.spread == 0 and result.fit_error < 1e-9
    assert result.flops == pytest.approx(3 * probe.FLOP * 65 / (1e-3 + 2e-3 * 65))
    machine = result.machine
    assert machine.slowed(1) == (1, 1) and machine.slowed(most) == pytest.approx((3, 1.5))
    assert machine.overlap == (workers == "processes")
    assert Calibration(**json.loads(json.dumps(asdict(result)))).machine == machine


def test_noise_is_told_and_company_makes_nobody_faster():
    noisy = made_up("ring", 2, 0, 1e9, noise=(1.0, 1.1, 1.4))
    result = summary("torch", "processes", "ring", noisy, 1.0)
    assert result.spread == pytest.approx((1.25 - 1.05) / 1.1)
    noisy["compute", 2, 1] = [seconds / 10 for seconds in noisy["compute", 1, 1]]
    noisy["compute", 2, 65] = [seconds / 10 for seconds in noisy["compute", 1, 65]]
    assert summary("torch", "processes", "ring", noisy, 1.0).slowdown[1] == (2, 1, 1)
    noisy["exchange", 2, 1000] = [1.0]
    assert summary("torch", "processes", "ring", noisy, 1.0).fit_error > 0.5


def test_one_device_has_no_link():
    result = summary("torch", "threads", "naive", made_up("naive", 1, 1, 1), 1.0)
    assert result.latency is None and result.slowdown == ((1, 1, 1),)
    work = Work(1e9, 2e-3, seconds_per_step=1e-3)
    assert step(work, result.machine, 1, 65).seconds == pytest.approx(1e-3 + 2e-3 * 65)


def test_the_slowest_rank_counts():
    ranks = [{"compute": [1.0, 5.0], "alone": [3.0, 3.0]}, {"compute": [2.0, 4.0], "alone": [0, 0]}]
    seconds_of = {what: seconds.tolist() for what, seconds in slowest(ranks).items()}
    assert seconds_of == {"compute": [2.0, 5.0], "alone": [3.0, 3.0]}


def test_simulated_devices_are_not_calibrated(monkeypatch):
    from d2lmgpu import torch as d2l
    from d2lmgpu.machine import devices

    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:8")
    for cores in (1, 3):
        monkeypatch.setattr(devices, "num_cores", lambda cores=cores: cores)
        assert measure.real_devices(d2l) == d2l.devices(8)[:cores]


@pytest.mark.parametrize("asked", [("jax",), ("mxnet", "processes"), ("torch", "fibres")])
def test_only_what_there_is_can_be_calibrated(asked):
    with pytest.raises(CostError, match="torch with threads"):
        calibrate(*asked)


def test_a_slowed_step_by_hand():
    result = summary("torch", "threads", "naive", made_up("naive", 3, 1e-3, 1e6), 1.0)
    work = Work(4000, 2e-3, seconds_per_step=5e-3, messages=4, algorithm="naive")
    alone, two, three = (step(work, result.machine, k, 60) for k in (1, 2, 3))
    assert alone.seconds == pytest.approx(5e-3 + 60 * 2e-3)
    assert two.compute == pytest.approx(2 * 5e-3 + 1.25 * 30 * 2e-3)  # half way to three
    assert three.compute == pytest.approx(3 * 5e-3 + 1.5 * 20 * 2e-3)
    assert two.exchange == pytest.approx(4 * (2 * 1e-3 + 2 * 1000 / 1e6))
    assert three.exposed == three.exchange == pytest.approx(4 * (2 * 1e-3 + 4 * 1000 / 1e6))


def test_the_probe_costs_what_torch_counts():
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from d2lmgpu import torch as d2l

    with FlopCounterMode(display=False) as counter:
        d2l.lenet(torch.zeros(3, 1, 28, 28), [torch.zeros(s) for s in probe.SHAPES])
    assert counter.get_total_flops() == 3 * probe.FLOP
