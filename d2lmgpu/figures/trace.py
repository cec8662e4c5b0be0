"""When each device did what, in an update that was really run: lanes for `charts.timeline`."""

import contextlib
import re
import time
from collections.abc import Iterator

LEAST_WAIT = 0.1  # milliseconds: shorter pauses are those of the tracing itself


class Trace:
    """Spans of time, each of a lane: what was done from when to when."""

    def __init__(self):
        self.spans = []

    @contextlib.contextmanager
    def span(self, lane: str, what: str) -> Iterator[None]:
        """Write down what the block does; the block must wait for the work that it starts."""
        start = time.perf_counter()
        yield
        self.add(lane, what, start, time.perf_counter())

    def add(self, lane: str, what: str, start: float, end: float) -> None:
        """Write down a span from `start` to `end`, both of time.perf_counter()."""
        self.spans.append((lane, start, end, what))

    def lanes(self) -> dict:
        """lane -> [(start, end, what)] in milliseconds from the first span on.

        Neighbours that do the same are one span; between two others the lane waits.
        """
        zero = min((start for _, start, _, _ in self.spans), default=0.0)
        lanes = {}
        for lane, start, end, what in sorted(self.spans, key=_by_number):
            spans = lanes.setdefault(lane, [])
            start, end = 1000 * (start - zero), 1000 * (end - zero)
            if spans and spans[-1][2] == what:
                start = spans.pop()[0]
            elif spans and start - spans[-1][1] > LEAST_WAIT:
                spans.append((spans[-1][1], start, "wait"))
            spans.append((start, end, what))
        return lanes


def _by_number(span):
    """A key that puts device 2 before device 10, and each lane's spans in their order."""
    lane, start, *_ = span
    return [int(word) if word.isdecimal() else word for word in re.split(r"(\d+)", lane)], start


def traced_update(backend, X, y, device_params, devices, lr, trace) -> list:
    """Do what ``backend.train_batch`` does, and write to ``trace`` when each device did what.

    backend: d2lmgpu.torch or d2lmgpu.mxnet; the next five arguments and the losses returned are
    those of its ``train_batch``. To know when a device is done, each span waits for it: a traced
    update may be a little slower.
    """
    lanes = [f"device {i}" for i in range(len(devices))]

    def compute(lane, X, y, params):
        with trace.span(lane, "compute"):
            loss = backend.forward_backward(X, y, params)
            wait_for(p.grad for p in params)
        return loss

    losses = backend.parallel(compute, lanes, *backend.split_batch(X, y, devices), device_params)
    start = time.perf_counter()
    for grads in zip(*[[p.grad for p in params] for params in device_params]):
        backend.allreduce(grads)
        wait_for(grads)
    end = time.perf_counter()
    for lane in lanes:  # the host sends for all devices, and all of them are in it
        trace.add(lane, "exchange", start, end)
    for lane, params in zip(lanes, device_params):
        with trace.span(lane, "update"):
            backend.sgd(params, lr, len(y))
            wait_for(params)
    return losses


def wait_for(arrays) -> None:
    """Wait until the arrays hold their values, in either framework: reading a number waits."""
    for array in arrays:
        float(array.detach().sum())
