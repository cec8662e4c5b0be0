"""Timer and Accumulator: D2L's own interface, exact numbers by a clock that is set."""

import pytest

from d2lmgpu.machine import timing
from d2lmgpu.machine.timing import Accumulator, Timer


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when told to."""
    now = [100.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def advance(seconds):
        now[0] += seconds

    return advance


def test_timer(clock):
    timer = Timer()  # is started by being made
    clock(2)
    assert timer.stop() == 2
    clock(50)  # between stop and start: not counted
    timer.start()
    clock(4)
    assert timer.stop() == 4
    assert timer.times == [2, 4]
    assert (timer.sum(), timer.avg(), timer.cumsum()) == (6, 3, [2, 6])


def test_timer_has_a_real_clock():
    assert Timer().stop() >= 0


def test_accumulator():
    sums = Accumulator(2)
    sums.add(1, 2)
    sums.add(0.5, True)
    assert (sums[0], sums[1]) == (1.5, 3.0)
    sums.reset()
    assert sums.data == [0.0, 0.0]


@pytest.mark.parametrize("numbers", [(1,), (1, 2, 3)])
def test_accumulator_wants_a_number_for_each_sum(numbers):
    sums = Accumulator(2)
    with pytest.raises(ValueError):
        sums.add(*numbers)
