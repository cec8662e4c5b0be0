"""One rule of steadiness: what a disturbed run looks like from inside and from outside."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.machine import hardware
from d2lmgpu.records import steady

QUIET = [0.001 * factor for factor in np.linspace(1, 1.04, 20)]
SPEED = st.floats(1e-6, 1e3)


def test_a_quiet_run_is_steady_whatever_its_first_step_takes():
    assert steady.unsteady([0.01, *QUIET]) == ""


@pytest.fixture
def machine(monkeypatch):
    """A function that gives the machine so many cores, of which a limit leaves us a quota."""

    def has(cores, quota=math.inf):
        monkeypatch.setattr(hardware, "affinity", lambda: cores)
        monkeypatch.setattr(hardware, "quota", lambda: quota)

    return has


@pytest.mark.parametrize("hiccups, steady_", [(1, True), (2, True), (3, False)])
def test_a_hiccup_is_none_of_its_times_but_a_busy_stretch_is(hiccups, steady_):
    pieces = [*QUIET[: 20 - hiccups], *[0.002] * hiccups]
    assert (steady.unsteady([0.001, *pieces]) == "") is steady_


@pytest.mark.parametrize("slow, steady_", [(6, True), (7, False)])
def test_where_others_are_seen_the_mean_may_be_a_quarter_above_the_fast_pieces(
    machine, slow, steady_
):
    machine(cores=2)
    pieces = [0.001] * (20 - slow) + [0.0019] * slow  # without tenths, means of 1.22 and 1.28
    assert (steady.unsteady([0.01, *pieces], 2, others=0.2) == "") is steady_
    assert steady.unsteady([0.01, *pieces], 2) != ""


# microseconds an image: a run of LeNet on two devices beside a JupyterLab and nothing else
IDLE = [278, 242, 249, 213, 184, 188, 202, 181, 188, 291]


def test_the_steps_of_an_idle_machine_vary_and_are_steady_where_others_are_seen(machine):
    machine(cores=2)
    assert steady.spread(IDLE) > steady.MOST and steady.unsteady(IDLE, 2, others=0.2) == ""


# the same of shorter runs; of the third, a hiccup is made longer than it was
SHORT = [
    ([122, 130, 95, 120, 109, 124], ""),
    ([120, 139, 101, 102, 172, 119], ""),
    ([139, 140, 108, 105, 110, 343, 142], "1.5 times"),
]


@pytest.mark.parametrize("run, reason", SHORT)
def test_one_fast_piece_of_a_short_run_makes_it_no_busy_stretch(machine, run, reason):
    machine(cores=2)
    assert steady.above_the_fast(run) < steady.fmean(run[1:]) / min(run[1:])
    why = steady.unsteady(run, 2, others=0.2)
    assert reason in why and bool(why) is bool(reason)


@given(st.lists(SPEED, max_size=60))
def test_spread_and_mean_are_those_of_the_middle_by_numpy(pieces):
    rest = np.sort(pieces[1:])
    tenth = int(0.1 * len(rest) + 1e-9)
    middle = rest[tenth : len(rest) - tenth] if len(rest) else np.ones(1)
    assert steady.spread(pieces) == pytest.approx(middle.max() / middle.min())
    quarter = np.quantile(middle, 0.25, method="lower")
    assert steady.above_the_fast(pieces) == pytest.approx(middle.mean() / quarter)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 100)), max_size=40))
def test_pieces_are_long_enough_and_lose_nothing_but_a_rest(points):
    parts = steady.pieces(points)
    seconds = sum(seconds for seconds, _ in points)
    assert len(parts) <= seconds / steady.PIECE + 1e-6
    assert all(piece > 0 for piece in parts)


def test_short_points_are_taken_together():
    assert steady.pieces([(0.02, 10)] * 9) == pytest.approx([0.002] * 3)


@pytest.mark.parametrize(
    "num_gpus, others, steady_",
    [
        (2, 0.3, True),
        (2, 0.5, False),  # of two cores 1.7 and 1.5 are left
        (1, 0.9, True),
        (1, 1.1, True),
        (1, 1.3, False),
        (1, None, True),
        (2, None, True),  # the system does not tell
        (2, 1.7, False),
        (1, 2.0, False),  # three busy loops
    ],
)
def test_what_others_take_counts_as_far_as_it_is_lacking(machine, num_gpus, others, steady_):
    machine(cores=2)
    reason = steady.unsteady(QUIET, num_gpus, others)
    assert (reason == "") is steady_
    assert steady_ or f"{others:.1f} of 2 cores" in reason


@pytest.mark.parametrize(
    "num_gpus, others, steady_",
    [
        (2, 1.0, True),
        (2, 12.0, True),
        (2, 14.0, True),  # of 16 cores 2 and more are left
        (2, 15.0, False),
        (1, 15.0, True),
        (1, 15.9, False),
        (8, 12.0, True),
        (8, 14.0, False),  # the quota lets 8 devices keep 4 cores busy
    ],
)
def test_with_a_quota_others_take_nothing_while_cores_are_left(machine, num_gpus, others, steady_):
    machine(cores=16, quota=4)
    reason = steady.unsteady(QUIET, num_gpus, others)
    assert (reason == "") is steady_
    assert steady_ or f"{others:.1f} of 16 cores" in reason


def test_a_quota_of_less_than_a_core_is_one_device(machine):
    machine(cores=16, quota=0)
    assert steady.unsteady(QUIET, 1, 15.0) == ""
    assert steady.unsteady(QUIET, 1, 15.9)


@given(st.integers(1, 16), st.floats(0, 20), st.integers(1, 16), st.integers(0, 20))
def test_more_others_never_make_it_faster_nor_does_a_larger_quota(num_gpus, others, cores, quota):
    slowed = steady.slowed(num_gpus, others, cores, quota)
    assert 1 <= slowed <= steady.slowed(num_gpus, others + 0.5, cores, quota)
    assert slowed <= steady.slowed(num_gpus, others, cores, quota + 1)
