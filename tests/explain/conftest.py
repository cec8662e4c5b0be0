"""What the tests of explain share."""

import pytest

from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.watch.explain import forecast


@pytest.fixture
def calibrated(monkeypatch):
    slowdown = ((1, 1.0, 1.0), (2, 1.5, 1.0))
    calibration = Calibration(
        "torch", "processes", "ring", 2, 4e10, 1e-4, 2e9, slowdown, 0.0, 0.0, 1.0
    )
    monkeypatch.setattr(forecast, "_calibration", lambda _: calibration)
