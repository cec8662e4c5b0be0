"""A watched update does what an unwatched one does, and its marks are in order."""

from itertools import pairwise

import numpy as np
import pytest

from d2lmgpu import marks

SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]


@pytest.fixture
def replicas(d2l, array):
    rng = np.random.default_rng(0)
    params = [array(0.1 * rng.normal(size=shape).astype("float32")) for shape in SHAPES]
    return lambda k: [d2l.get_params(params, device) for device in d2l.devices(k)]


@pytest.fixture
def batch(array):
    rng = np.random.default_rng(1)
    X, y = rng.random((10, 1, 28, 28), dtype="float32"), rng.integers(0, 10, 10)
    return array(X), array(y)


def test_marks_of_an_update(d2l, replicas, batch, numpy):
    watched, plain = replicas(2), replicas(2)
    with marks.watch(d2l, watched) as seen:
        d2l.train_batch(*batch, watched, d2l.devices(2), 0.1)
    d2l.train_batch(*batch, plain, d2l.devices(2), 0.1)
    for ours, theirs in zip(watched, plain, strict=True):
        for p, q in zip(ours, theirs, strict=True):
            assert np.array_equal(numpy(p), numpy(q))
    lanes = seen.lanes()
    assert list(lanes) == ["device 0", "device 1"]
    for spans in lanes.values():
        assert [what for *_, what in spans if what != "wait"] == ["compute", "exchange", "update"]
        assert all(start < end for start, end, _ in spans)
        assert all(one[1] <= two[0] for one, two in pairwise(spans))
    exchange = {
        (start, end) for spans in lanes.values() for start, end, what in spans if what == "exchange"
    }
    assert len(exchange) == 1, "all devices exchange at once"


def test_an_error_ends_the_watch(d2l, replicas, batch):
    before = d2l.forward_backward, d2l.allreduce, d2l.sgd
    device_params = replicas(2)
    with pytest.raises(ZeroDivisionError), marks.watch(d2l, device_params):
        assert d2l.forward_backward is not before[0]
        1 / 0  # noqa: B018
    assert (d2l.forward_backward, d2l.allreduce, d2l.sgd) == before


def test_lanes_merge_neighbours_and_show_waits():
    seen = marks.Marks()
    seen.add("a", "compute", 10.0, 10.5)
    seen.add("b", "compute", 10.0, 10.2)
    for lane in "ab":
        seen.add(lane, "exchange", 10.5, 10.6)
        seen.add(lane, "exchange", 10.6, 10.8)
        seen.add(lane, "update", 10.80001, 10.9)  # a pause too short to be a wait
    rounded = {
        lane: [(round(start), round(end), what) for start, end, what in spans]
        for lane, spans in seen.lanes().items()
    }
    assert rounded == {
        "a": [(0, 500, "compute"), (500, 800, "exchange"), (800, 900, "update")],
        "b": [
            (0, 200, "compute"),
            (200, 500, "wait"),
            (500, 800, "exchange"),
            (800, 900, "update"),
        ],
    }
    assert marks.Marks().lanes() == {}
