"""balance: how fast each device is, by a clock that is set, and what follows for the batch."""

import numpy as np
import pytest
from lenet_start import random_batch, start

from d2lmgpu.backend.functions import balancing_function
from d2lmgpu.machine import timing


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the work of a device moves on."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


@pytest.fixture
def balanced(d2l, array, clock):
    """Weights for a batch of n; a device takes ``fixed + each * n`` seconds for n examples."""

    def weights(each, fixed=0, n=120, old=None, hiccup=None):
        calls = []

        def work(X, y, params, seconds):
            calls.append(seconds)
            clock[0] += fixed + len(y) * seconds
            clock[0] += 1000 * (len(calls) == hiccup)

        X, y = array(np.zeros((n, 2))), array(np.zeros(n))
        return d2l.balance(work, X, y, [], d2l.devices(len(each)), each, weights=old)

    return weights


@pytest.mark.parametrize(
    "each, weights",
    [([1, 4], [0.8, 0.2]), ([1, 1], [0.5, 0.5]), ([3], [1]), ([1, 2, 6], [0.6, 0.3, 0.1])],
)
@pytest.mark.parametrize("old", [None, "uneven"])
def test_weights_are_the_parts_of_all_speeds(balanced, each, weights, old):
    old = old and [1 - 0.1 * (len(each) - 1)] + [0.1] * (len(each) - 1)
    np.testing.assert_allclose(balanced(each, old=old), weights, rtol=1e-12)


@pytest.mark.parametrize("hiccup", [1, 4])
def test_neither_the_first_time_nor_a_hiccup_counts(balanced, hiccup):
    np.testing.assert_allclose(balanced([1, 4], hiccup=hiccup), [0.8, 0.2], rtol=1e-12)


def test_given_back_its_weights_make_all_finish_together(d2l, balanced):
    each, fixed, n, weights = [1, 4], 20, 1000, None
    for _ in range(3):
        weights = balanced(each, fixed, n, old=weights)
    fast, slow = (fixed + size * s for size, s in zip(d2l.shard_sizes(n, 2, weights), each))
    assert abs(fast - slow) <= 8  # of 820 seconds: two examples of the slow device
    assert abs(fixed + n / 2 * 1 - (fixed + n / 2 * 4)) == 1500  # what it was with an even split


def test_the_weights_are_what_split_batch_takes(d2l, array, numpy, balanced):
    X, y = array(np.arange(10.0).reshape(10, 1)), array(np.arange(10))
    shards, _ = d2l.split_batch(X, y, d2l.devices(2), balanced([1, 4]))
    assert [len(shard) for shard in shards] == [8, 2]
    np.testing.assert_array_equal(np.concatenate([numpy(s) for s in shards]), numpy(X))


def test_waits_for_the_device_before_each_reading_of_the_clock(d2l, array, monkeypatch):
    events = []
    balance = balancing_function(d2l.split_batch, d2l.get_params, lambda: events.append("wait"))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: events.append("clock") or len(events))
    X, y = array(np.zeros((4, 2))), array(np.zeros(4))
    balance(lambda *args: events.append("work"), X, y, [], d2l.devices(2))
    steps = events[events.index("wait") :]
    assert steps == ["wait", "clock", "work", "wait", "clock"] * 12  # 6 times on 2 devices


def test_parameters_and_their_gradients_stay_as_they_are(d2l, array, numpy):
    params = d2l.get_params([array(p) for p in start("float32")], d2l.try_gpu(0))
    X, y = (array(a) for a in random_batch(6, "float32", 0))
    weights = d2l.balance(d2l.forward_backward, X, y, params, d2l.devices(2))
    assert sum(weights) == pytest.approx(1) and min(weights) > 0
    for p, first in zip(params, start("float32")):
        np.testing.assert_array_equal(numpy(p), first)
        assert (numpy(p.grad) == 0).all()


def test_a_device_without_examples_cannot_be_measured(balanced):
    with pytest.raises(ValueError, match=r"shards have \[1, 1, 0\] examples.*at least one"):
        balanced([1, 1, 1], n=2)
    with pytest.raises(ValueError, match=r"shards have \[120, 0\]"):
        balanced([1, 1], old=[1.0, 0.0])


def test_arguments_for_another_number_of_devices(d2l, array):
    X, y = array(np.zeros((4, 2))), array(np.zeros(4))
    with pytest.raises(ValueError, match=r"entries.*\[2, 3\]"):
        d2l.balance(lambda *args: None, X, y, [], d2l.devices(2), [1, 2, 3])
