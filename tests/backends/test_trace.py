"""A traced update does what train_batch does, and its spans are in order."""

import threading
from itertools import pairwise

import numpy as np
import pytest

from d2lmgpu.backend.arguments import LENET_SHAPES
from d2lmgpu.figures import trace


@pytest.fixture
def replicas(d2l, array):
    rng = np.random.default_rng(0)
    params = [array(0.1 * rng.normal(size=shape).astype("float32")) for shape in LENET_SHAPES]
    return lambda k: [d2l.get_params(params, device) for device in d2l.devices(k)]


@pytest.fixture
def batch(array):
    rng = np.random.default_rng(1)
    X, y = rng.random((10, 1, 28, 28), dtype="float32"), rng.integers(0, 10, 10)
    return array(X), array(y)


def test_lanes_are_in_the_order_of_their_devices():
    spans = trace.Trace()
    for i in (10, 2, 0):
        spans.add(f"device {i}", "compute", i, i + 1)
    assert list(spans.lanes()) == ["device 0", "device 2", "device 10"]


def test_trace_of_an_update(d2l, replicas, batch, numpy):
    traced, plain, seen = replicas(2), replicas(2), trace.Trace()
    losses = trace.traced_update(d2l, *batch, traced, d2l.devices(2), 0.1, seen)
    expected = d2l.train_batch(*batch, plain, d2l.devices(2), 0.1)
    assert [float(loss) for loss in losses] == [float(loss) for loss in expected]
    for ours, theirs in zip(traced, plain, strict=True):
        for p, q in zip(ours, theirs, strict=True):
            assert np.array_equal(numpy(p), numpy(q))
    lanes = seen.lanes()
    assert list(lanes) == ["device 0", "device 1"]
    for spans in lanes.values():
        assert [what for *_, what in spans if what != "wait"] == ["compute", "exchange", "update"]
        assert all(start < end for start, end, _ in spans)
        assert all(span[1] <= following[0] for span, following in pairwise(spans))
    exchange = {
        (start, end) for spans in lanes.values() for start, end, what in spans if what == "exchange"
    }
    assert len(exchange) == 1, "all devices exchange at once"


def test_updates_traced_at_once_do_not_meet(d2l, replicas, batch):
    """Each has a trace of its own; nothing of the backend is changed meanwhile."""
    traces = [trace.Trace() for _ in range(2)]
    before = vars(d2l).copy()

    def update(seen):
        trace.traced_update(d2l, *batch, replicas(2), d2l.devices(2), 0.1, seen)

    threads = [threading.Thread(target=update, args=(seen,)) for seen in traces]
    for thread in threads:
        thread.start()
    assert vars(d2l) == before
    for thread in threads:
        thread.join()
    for seen in traces:
        assert sorted({what for _, _, _, what in seen.spans}) == ["compute", "exchange", "update"]
        assert len(seen.spans) == 6


def test_lanes_merge_neighbours_and_show_waits():
    seen = trace.Trace()
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
    assert trace.Trace().lanes() == {}
