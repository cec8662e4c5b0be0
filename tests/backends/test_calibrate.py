"""Calibration of real devices, and what the forecasts take for granted about the networks."""

import math

import pytest

from d2lmgpu.costmodel import forecast, measure, probe
from d2lmgpu.course.forecasting import num_parameters
from d2lmgpu.machine import devices


def test_two_real_devices(framework, monkeypatch):
    monkeypatch.setattr(probe, "REPEATS", 2)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:2")
    monkeypatch.setattr(devices, "num_cores", lambda: 2)
    calibration = measure.calibrate(framework)
    assert calibration.framework == framework and calibration.devices == 2
    assert (
        calibration.flops > 0
        and calibration.bandwidth > 0
        and calibration.latency >= 0
        and calibration.seconds > 0
    )
    assert [k for k, _, _ in calibration.slowdown] == [1, 2] and calibration.slowdown[0] == (
        1,
        1,
        1,
    )
    assert all(factor >= 1 for point in calibration.slowdown for factor in point[1:])
    assert math.isfinite(calibration.fit_error) and math.isfinite(calibration.spread)
    assert calibration.machine.devices == 2


@pytest.mark.parametrize("width", [4, 8])
def test_the_parameters_of_resnet18(d2l, framework, width):
    net = d2l.resnet18(10, width=width)
    if framework == "mxnet":
        from mxnet import np

        net.initialize()
        net(np.zeros((1, 1, 28, 28)))
        learned = [p.shape for p in net.collect_params().values() if p.grad_req != "null"]
    else:
        learned = [tuple(p.shape) for p in net.parameters()]
    assert sum(map(math.prod, learned)) == num_parameters("resnet18", width)
    if framework == "mxnet":  # DDP puts them all in one bucket
        assert len(learned) == forecast.TRAININGS["resnet18", "mxnet"].messages
