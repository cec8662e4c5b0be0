"""What is timed in a step, by a clock that the test moves."""

import threading

import pytest

from d2lmgpu.process import lanes
from d2lmgpu.process.lanes import LISTENER, Steps


class Clock:
    now = 100.0

    def monotonic(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(lanes, "time", clock)
    monkeypatch.setattr(LISTENER, "steps", None)
    return clock


def one_after_the_other(fn, *per_device_args):
    return [fn(*args) for args in zip(*per_device_args, strict=True)]


def step(clock, *parts):
    """A step in which the loader takes 1 s, then ``parts`` happen."""
    LISTENER.begin(1)
    clock.spend(1)
    LISTENER.loaded()
    for part in parts:
        part()
    LISTENER.end()


def test_nothing_is_timed_where_nobody_listens(clock):
    exchange = lanes.exchange(lambda: 3)
    step(clock, lambda: lanes.parallel(one_after_the_other, clock.spend, [1, 2]))
    assert (exchange(), LISTENER.totals()) == (3, None)


def test_nothing_is_timed_once_nobody_listens_any_more(clock):
    with LISTENER.listen(Steps()):
        assert LISTENER.totals()["number"] == 0
    step(clock, lambda: lanes.exchange(clock.spend)(2))
    assert LISTENER.totals() is None


def test_each_device_computes_waits_and_exchanges(clock):
    LISTENER.listen(Steps())
    exchange = lanes.exchange(clock.spend)

    def compute():
        return lanes.parallel(one_after_the_other, clock.spend, [3, 5])

    step(clock)  # the first one is not counted
    for _ in range(2):
        step(clock, compute, lambda: clock.spend(0.5), lambda: exchange(2))
    totals = LISTENER.totals()
    assert totals["number"] == totals["samples"] == 2 and totals["total"] == 2 * (1 + 8 + 0.5 + 2)
    # Device 0 works for 3 s and waits for 5, device 1 waits for 3 and works for 5.
    assert totals["seconds"] == {"loading": 2, "computing": 8, "waiting": 8, "exchanging": 4}
    first = totals["lanes"][: len(totals["lanes"]) // 2]
    begin = first[0][2]
    assert [(device, what, start - begin, end - begin) for device, what, start, end in first] == [
        (None, "loading", 0, 1),
        (0, "computing", 1, 4),
        (0, "waiting", 4, 9),
        (1, "waiting", 1, 4),
        (1, "computing", 4, 9),
        (None, "exchanging", 9.5, 11.5),
    ]
    nothing = {"number": 0, "samples": 0, "seconds": {}, "total": 0.0, "lanes": [], "memory": None}
    assert LISTENER.totals() == nothing


def test_what_is_called_inside_of_a_part_belongs_to_it(clock):
    LISTENER.listen(Steps())
    inner = lanes.exchange(clock.spend)
    ring = lanes.exchange(lambda: lanes.parallel(one_after_the_other, inner, [1, 1]))

    def computes_and_adds(seconds):
        clock.spend(seconds)
        inner(1)

    step(clock)
    step(clock, ring, lambda: lanes.parallel(one_after_the_other, computes_and_adds, [4]))
    assert LISTENER.totals()["seconds"] == {
        "loading": 1,
        "exchanging": 2,
        "computing": 5,
        "waiting": 0,
    }


def test_an_error_inside_of_a_part_does_not_silence_the_next_steps(clock):
    LISTENER.listen(Steps())
    step(clock)
    with pytest.raises(ZeroDivisionError):
        step(clock, lanes.exchange(lambda: 1 / 0))
    step(clock, lambda: lanes.exchange(clock.spend)(2))
    assert LISTENER.totals()["seconds"] == {"loading": 1, "exchanging": 2}


def test_outside_of_a_step_and_in_other_threads_nothing_is_timed(clock):
    LISTENER.listen(Steps())
    step(clock)
    lanes.parallel(one_after_the_other, clock.spend, [1, 1])  # an evaluation

    def elsewhere():
        step(clock, lambda: lanes.exchange(clock.spend)(2))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert LISTENER.totals()["number"] == 0


def test_where_calls_return_early_a_step_in_half_a_second_waits_for_its_devices(clock):
    queued = []

    def wait():
        clock.spend(sum(queued))
        queued.clear()

    LISTENER.listen(Steps(wait))

    def compute():
        return lanes.parallel(one_after_the_other, queued.append, [3, 5], apart=False)

    step(clock)
    clock.spend(1)
    step(clock, compute, lambda: lanes.exchange(queued.append)(2), lambda: queued.append(4))
    totals = LISTENER.totals()
    assert totals["seconds"] == {"loading": 1, "computing": 8, "exchanging": 2}
    assert (totals["number"], totals["total"]) == (1, 15)
    clock.spend(0.25)
    step(clock, compute)
    assert queued == [3, 5] and LISTENER.totals()["number"] == 0, "too soon: it does not wait"


def test_what_a_library_says_of_a_step_is_part_of_it(clock):
    asked = []

    def parts(since):
        asked.append(since)
        return [("computing", since + 2, since + 5)] if len(asked) > 2 else []

    LISTENER.listen(Steps(parts=parts))
    begun = [clock.now, clock.now + 6, clock.now + 12]
    for _ in range(3):
        step(clock, lambda: clock.spend(5))
    totals = LISTENER.totals()
    assert asked == begun, "it is asked for each step, also for the first"
    assert (totals["number"], totals["seconds"]) == (2, {"loading": 2, "computing": 3})
    assert [what for _, what, *_ in totals["lanes"]] == ["loading", "loading", "computing"]


def test_a_lane_is_small_and_its_spans_can_be_seen(clock):
    LISTENER.listen(Steps())
    adds = lanes.exchange(clock.spend)

    def exchanges():
        for _ in range(8):  # one for each parameter
            adds(0.01)
            clock.spend(1e-5)

    step(clock)
    step(clock, exchanges)
    totals = LISTENER.totals()
    assert [what for _, what, *_ in totals["lanes"]] == ["loading", "exchanging"]
    assert totals["seconds"]["exchanging"] == pytest.approx(0.08)
    for _ in range(100):
        step(clock, lambda: lanes.parallel(one_after_the_other, clock.spend, [0.01] * 16))
    assert len(LISTENER.totals()["lanes"]) <= lanes.MOST_SPANS


def test_memory_alone_where_times_would_be_wrong(clock):
    LISTENER.listen(Steps(memory=lambda: [5, 7], timed=False))
    step(clock)
    step(clock, lambda: lanes.exchange(clock.spend)(2))
    totals = LISTENER.totals()
    assert (totals["memory"], totals["number"], totals["lanes"]) == ([5, 7], 0, [])


def test_the_reader_s_own_allreduce_is_an_exchange(clock):
    def made(code):
        names = {"clock": clock}
        exec(code, names)
        return names["train"]

    train = made("def allreduce(): clock.spend(2)\ndef train(): allreduce()")
    LISTENER.listen(Steps())
    lanes.watch(train)
    lanes.watch(train)  # once is enough, and twice is no harm
    step(clock)
    step(clock, train)
    assert LISTENER.totals()["seconds"] == {"loading": 1, "exchanging": 2}
    lanes.watch(made("allreduce = 3\ndef train(): return allreduce"))
    lanes.watch(max)
