"""Functions take turns, the first round does not count, and ratios are those of a round."""

import pytest

from d2lmgpu.machine import turns
from d2lmgpu.machine.turns import TurnsError, in_turns, times_as_fast


@pytest.fixture
def clock(monkeypatch):
    """A clock that the functions themselves set forward."""
    now = [0.0]
    monkeypatch.setattr(turns, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_each_round_has_all_functions_and_the_first_does_not_count(clock, rounds):
    called = []

    def working(name, seconds):
        def work():
            called.append(name)
            clock[0] += seconds + (100 if len(called) <= 3 else 0)  # cold

        return work

    result = in_turns({"a": working("a", 1), "b": working("b", 2), "c": working("c", 4)}, rounds)
    assert called == ["a", "b", "c"] * (rounds + 1)
    assert result == {"a": [1] * rounds, "b": [2] * rounds, "c": [4] * rounds}


def test_another_clock_is_read_where_one_is_given(clock):
    """The wall clock goes on while a thread waits; another clock need not."""
    own = [0.0]

    def work():
        clock[0] += 7
        own[0] += 3

    assert in_turns({"a": work}, 2, clock=lambda: own[0]) == {"a": [3, 3]}


@pytest.mark.parametrize("clock", [1, "time", [print]])
def test_what_is_no_clock_is_refused(clock):
    with pytest.raises(TurnsError, match="clock"):
        in_turns({"a": int}, 1, clock)


@pytest.mark.parametrize(
    "seconds, base, words",
    [
        ([1, 1, 1], [2, 2, 2], "2.00 times as fast (2.00 to 2.00)"),
        ([1, 10, 1], [1.5, 18, 2], "1.80 times as fast (1.50 to 2.00)"),
        ([4], [2], "0.50 times as fast (0.50 to 0.50)"),
    ],
)
def test_a_ratio_is_taken_in_each_round(seconds, base, words):
    """A slow round hits both, so its ratio is that of the others."""
    assert times_as_fast(seconds, base) == words


@pytest.mark.parametrize(
    "functions, rounds",
    [
        ({}, 5),
        (None, 5),
        ([print], 5),
        ({"a": 1}, 5),
        ({"a": int}, 0),
        ({"a": int}, 1.5),
        ({"a": int}, "2"),
    ],
)
def test_what_cannot_take_turns_is_refused(functions, rounds):
    with pytest.raises(TurnsError):
        in_turns(functions, rounds)


@pytest.mark.parametrize("seconds, base", [([], []), ([1], [1, 2]), ([1, 2], [1])])
def test_times_of_other_rounds_are_refused(seconds, base):
    with pytest.raises(TurnsError):
        times_as_fast(seconds, base)
