"""Who holds the peak of a snapshot, against a walk forwards that knows every moment."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.memory.snapshot import held_at_peak, line_of

TORCH = {
    "filename": "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py",
    "line": 134,
    "name": "forward",
}
CPP = {"filename": "??", "line": 0, "name": "torch::autograd::Engine::thread_main"}


def frames(line):
    return [CPP, TORCH, {"filename": "train.py", "line": line, "name": "step"}]


class StandIn:
    """What `_record_memory_history` notes of one GPU; addresses are used again."""

    def __init__(self):
        self.events, self.blocks, self.moments = [], {}, [Counter()]
        self.requested = []  # to be given back: another stream may still use them

    def _now(self):
        held = Counter()
        for line, size in self.blocks.values():
            held[line] += size
        self.moments.append(held)

    def _note(self, action, address, size, line):
        event = {"action": action, "addr": address, "size": size, "stream": 0}
        self.events.append(event | {"frames": frames(line)})

    def take(self, size, line):
        address = next(i for i in range(1000) if i not in self.blocks)
        self.blocks[address] = line, size
        self._note("alloc", address, size, line)
        self._now()

    def give_back(self, which):
        live = sorted(set(self.blocks) - set(self.requested))
        if live:
            address = live[which % len(live)]
            self.requested.append(address)
            self._note("free_requested", address, self.blocks[address][1], 999)  # the line of `del`
            self._now()

    def complete(self):
        for address in self.requested:
            _, size = self.blocks.pop(address)
            self._note("free_completed", address, size, 999)
            self._now()
        self.requested = []

    def snapshot(self, kept):
        """With the last ``kept`` events alone."""
        blocks = [
            {
                "address": address,
                "size": 512,
                "requested_size": size,
                "frames": frames(line),
                "state": ("active_allocated", "active_awaiting_free")[address % 2],
            }
            for address, (line, size) in self.blocks.items()
        ]
        free = {
            "address": 2000,
            "size": 512,
            "requested_size": 7,
            "frames": [],
            "state": "inactive",
        }
        other = {
            "address": 0,
            "size": 512,
            "requested_size": 10**9,
            "frames": frames(1),
            "state": "active_allocated",
        }
        segments = [{"device": 0, "blocks": [*blocks, free]}, {"device": 1, "blocks": [other]}]
        events = self.events[len(self.events) - kept :]
        return {"segments": segments, "device_traces": [events, []]}


steps = st.lists(st.tuples(st.integers(-5, 40), st.integers(1, 5)), max_size=40)


@given(steps, st.integers(0, 100))
def test_the_lines_at_the_peak(steps, kept):
    stand_in = StandIn()
    for size, line in steps:
        if size > 0:
            stand_in.take(size, line)
        elif size > -4:
            stand_in.give_back(line)
        else:
            stand_in.complete()
    kept = min(kept, len(stand_in.events))
    by_line = held_at_peak(stand_in.snapshot(kept))
    moments = stand_in.moments[len(stand_in.moments) - 1 - kept :]
    peak = max(moments, key=Counter.total)  # the first of the highest
    assert sum(by_line.values()) == peak.total()
    if kept == len(stand_in.events):
        assert by_line == {f"train.py:{line}": size for line, size in peak.items()}
    known = {line: size for line, size in by_line.items() if line != "not recorded"}
    assert all(size <= peak[int(line.split(":")[1])] for line, size in known.items())
    assert list(by_line.values()) == sorted(by_line.values(), reverse=True)


def test_what_was_there_before_the_history_and_ended_in_it():
    stand_in = StandIn()
    stand_in.take(30, 1)
    stand_in.take(5, 2)
    stand_in.give_back(0)
    stand_in.complete()
    stand_in.take(6, 3)
    assert held_at_peak(stand_in.snapshot(3)) == {"not recorded": 30, "train.py:2": 5}


def test_another_gpu():
    assert held_at_peak(StandIn().snapshot(0), device=1) == {"train.py:1": 10**9}


def test_an_allocation_in_the_backward_pass_has_no_line_of_the_readers():
    assert line_of([CPP, TORCH]) == "no line of yours"
    assert line_of(frames(12)) == "train.py:12" and line_of([]) == "not recorded"
