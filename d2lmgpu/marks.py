"""When each device did what, in an update that was really run: lanes for `charts.timeline`."""

import contextlib
import time

LEAST_WAIT = 0.1  # milliseconds: shorter pauses are those of the marks themselves


class Marks:
    """Spans of time, each of a lane: what was done from when to when."""

    def __init__(self):
        self.spans = []

    @contextlib.contextmanager
    def span(self, lane: str, what: str):
        """Mark what the block does; the block must wait for the work that it starts."""
        start = time.perf_counter()
        yield
        self.add(lane, what, start, time.perf_counter())

    def add(self, lane: str, what: str, start: float, end: float) -> None:
        """Mark a span from `start` to `end`, both of time.perf_counter()."""
        self.spans.append((lane, start, end, what))

    def lanes(self) -> dict:
        """lane -> [(start, end, what)] in milliseconds from the first mark on.

        Neighbours that do the same are one span; between two others the lane waits.
        """
        zero = min((start for _, start, _, _ in self.spans), default=0.0)
        lanes = {}
        for lane, start, end, what in sorted(self.spans):
            spans = lanes.setdefault(lane, [])
            start, end = 1000 * (start - zero), 1000 * (end - zero)
            if spans and spans[-1][2] == what:
                start = spans.pop()[0]
            elif spans and start - spans[-1][1] > LEAST_WAIT:
                spans.append((spans[-1][1], start, "wait"))
            spans.append((start, end, what))
        return lanes


@contextlib.contextmanager
def watch(backend, device_params):
    """Mark what `backend.train_batch` does on each device while the block runs; gives the Marks.

    backend: d2lmgpu.torch or d2lmgpu.mxnet. device_params: the replicas that are trained. To know
    when a device is done, each mark waits for it: a watched update may be a little slower.
    """
    marks = Marks()
    lanes = [f"device {i}" for i in range(len(device_params))]

    def lane_of(params):
        return next(lane for lane, own in zip(lanes, device_params, strict=True) if own is params)

    def forward_backward(X, y, params):
        with marks.span(lane_of(params), "compute"):
            loss = plain["forward_backward"](X, y, params)
            wait_for(p.grad for p in params)
        return loss

    def allreduce(data):
        start = time.perf_counter()
        plain["allreduce"](data)
        wait_for(data)
        end = time.perf_counter()
        for lane in lanes:  # the host sends for all devices, and all of them are in it
            marks.add(lane, "exchange", start, end)

    def sgd(params, lr, batch_size):
        with marks.span(lane_of(params), "update"):
            plain["sgd"](params, lr, batch_size)
            wait_for(params)

    watched = {"forward_backward": forward_backward, "allreduce": allreduce, "sgd": sgd}
    plain = {name: getattr(backend, name) for name in watched}
    try:
        for name, function in watched.items():
            setattr(backend, name, function)
        yield marks
    finally:
        for name, function in plain.items():
            setattr(backend, name, function)


def wait_for(arrays) -> None:
    """Wait until the arrays hold their values, in either framework: reading a number waits."""
    for array in arrays:
        float(array.detach().sum())
