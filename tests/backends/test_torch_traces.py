"""Traces of ranks in one file, and what lies in which span: by hand, and by sampled moments."""

import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.torch.traces import (
    ROUNDING,
    Span,
    computed,
    inside,
    is_derivative,
    is_nested,
    merged,
    read_merged,
    self_times,
    spans_of,
    step_lanes,
    steps_of,
    with_parents,
)

OUTER, FIRST = Span(0, 1, "outer", 0, 10), Span(0, 1, "first", 0, 4)
SECOND = Span(0, 1, "second", 4, 10)
AFTER = Span(0, 1, "after", 10, 12)


def small(rank, base, **more):
    """A trace as the profiler exports it, with one span of 5 microseconds and what is left out."""
    place = {"pid": 7, "tid": 3, "ts": 20.0, "dur": 5.0, "args": {"Ev Idx": 0}}
    event = {"name": "load", "cat": "user_annotation", "ph": "X"} | place
    beside = [
        event | {"cat": "Trace", "name": "PyTorch Profiler (0)"},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "pid": 7, "tid": 3, "ts": 20.0, "id": 1},
        {"ph": "M", "name": "process_name", "pid": 7, "ts": 0, "args": {"name": "python"}},
    ]
    return {"baseTimeNanoseconds": base, "traceEvents": [event, *beside]} | more


def ranks(*bases):
    return [small(rank, base, distributedInfo={"rank": rank}) for rank, base in enumerate(bases)]


def test_each_rank_is_a_process_on_the_clock_of_the_first():
    trace = merged(ranks(5_000, 8_000))
    names = {e["pid"]: e["args"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert names == {1: {"name": "rank 0"}, 2: {"name": "rank 1"}}
    kept = {"name": "load", "cat": "user_annotation", "ph": "X", "tid": 3, "dur": 5.0}
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert complete == [kept | {"pid": 1, "ts": 20.0}, kept | {"pid": 2, "ts": 23.0}]


def test_a_process_that_is_no_rank_is_rank_0():
    assert spans_of(merged([small(0, 8)])) == [Span(0, 3, "load", 0, 0.005)]


def test_files_of_all_ranks(tmp_path):
    for rank, trace in enumerate(ranks(5_000, 8_000)):
        (tmp_path / f"{rank}.json").write_text(json.dumps(trace))
    read = read_merged(tmp_path / f"{rank}.json" for rank in range(2))
    assert read == merged(ranks(5_000, 8_000))


def test_spans_stand_in_their_order_in_milliseconds_from_the_first():
    events = [
        {"name": name, "ph": "X", "pid": 2, "tid": 1, "ts": ts, "dur": dur}
        for name, ts, dur in (("b", 9000, 500), ("c", 9000, 900), ("a", 8000, 3000))
    ]
    name = {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "rank 1"}}
    sorted_spans = spans_of({"traceEvents": [name, *events]})
    assert sorted_spans == [Span(1, 1, "a", 0, 3), Span(1, 1, "c", 1, 1.9), Span(1, 1, "b", 1, 1.5)]
    assert spans_of({"traceEvents": []}) == []


def test_parents_are_found_and_rounding_is_forgiven():
    nested = [OUTER, FIRST, SECOND, AFTER]
    parents = [(OUTER, None), (FIRST, OUTER), (SECOND, OUTER), (AFTER, None)]
    assert with_parents(nested) == parents and is_nested(nested)
    assert not is_nested([OUTER, FIRST, Span(0, 1, "across", 3, 5), SECOND])
    tiny, beside = Span(0, 1, "tiny", 0, ROUNDING), Span(0, 1, "beside", 0, 1)
    assert with_parents([tiny, beside]) == [(tiny, None), (beside, None)]
    assert is_nested([Span(0, 1, "parent", -1, 0), Span(0, 1, "child", -0.5, ROUNDING)])


def trees(start, end):
    """Spans of one thread between two whole milliseconds, nested, with a name for each."""
    if end - start < 1:
        return st.just([])
    pair = st.tuples(st.integers(start, end), st.integers(start, end)).map(sorted)

    def grown(at):
        low, high = at
        if low == high:
            return st.just([])
        own = st.sampled_from("abc").map(lambda name: [Span(0, 1, name, low, high)])
        within = trees(low, high) if high - low < end - start else st.just([])
        return st.tuples(own, within, trees(high, end)).map(lambda parts: [*chain(*parts)])

    return pair.flatmap(grown)


@given(trees(0, 8))
def test_self_times_are_those_of_the_innermost_span_of_each_moment(spans):
    spans = sorted(spans, key=lambda span: (span.start, -span.end))
    expected = {span.name: 0 for span in spans}
    for now in range(8):
        around = [s for s in spans if s.start <= now < s.end]
        if around:
            expected[around[-1].name] += 1
    assert is_nested(spans) and self_times(spans) == expected


def test_self_times_add_up_to_the_whole():
    seconds = self_times([OUTER, FIRST, SECOND, AFTER])
    assert seconds == {"outer": 0, "first": 4, "second": 6, "after": 2}


def test_what_waits_is_told_from_what_computes_on_both_ranks():
    backward, derivative = Span(0, 1, "backward", 2, 9), Span(0, 1, "AddmmBackward0", 2, 5)
    label = Span(0, 1, "autograd::engine::evaluate_function: AddmmBackward0", 2, 7)
    others = [Span(0, 2, "MmBackward0", 3, 8), Span(1, 1, "MmBackward0", 3, 8)]
    early = Span(0, 1, "ReluBackward0", 2, 3)
    late = Span(0, 1, "ReluBackward0", 9, 10)  # begins where the backward pass has ended
    spans = [backward, derivative, early, label, *others, late]
    assert inside(backward, spans) == [backward, derivative, early, label]
    assert is_derivative(derivative) and not is_derivative(label)
    assert computed(backward, spans) == Span(0, 1, "backward", 2, 5)
    assert computed(label, []) == label


def two_ranks():
    """A step of two ranks: rank 1 begins later, and each has a thread of gloo."""
    spans = []
    for rank, begin in ((0, 10), (1, 12)):
        spans += [
            Span(rank, 1, "ProfilerStep#1", begin, begin + 30),
            Span(rank, 1, "load", begin, begin + 4),
            Span(rank, 1, "forward", begin + 4, begin + 6),
            Span(rank, 1, "backward", begin + 6, begin + 20),
            Span(rank, 1, "AddmmBackward0", begin + 6, begin + 14),
            Span(rank, 7, "gloo:all_reduce", begin + 14, begin + 20),
            Span(rank, 1, "update", begin + 20, begin + 20.05),  # too short to be seen
            Span(rank, 1, "ProfilerStep#2", begin + 30, begin + 60),
            Span(rank, 1, "load", begin + 30, begin + 33),
        ]
    return spans


def test_lanes_of_a_step():
    spans = two_ranks()
    assert steps_of(spans, 2, rank=1) == [Span(1, 1, "ProfilerStep#2", 42, 72)]
    assert steps_of(spans, 3, rank=0) == []
    own = [(0, 4, "load"), (4, 6, "compute"), (6, 14, "compute")]
    exchange = (14, 20, "exchange")
    lanes = step_lanes(spans)
    assert list(lanes) == ["gloo 0a", "rank 0", "rank 1", "gloo 1a"]
    assert lanes["gloo 0a"] == [exchange]
    assert lanes["gloo 1a"] == [(16, 22, "exchange")]
    # by the kind, for the same colours each time
    assert sorted(lanes["rank 0"]) == own
    assert sorted(lanes["rank 1"]) == [(a + 2, b + 2, what) for a, b, what in own]
    assert sorted(step_lanes(spans, 1, 2)["rank 0"]) == [*own, (30, 33, "load")]


@pytest.mark.parametrize("name", ["forward", "log", "gloo:all_reduce"])
def test_a_lane_has_only_what_began_in_the_step(name):
    spans = [*two_ranks(), Span(0, 1, name, 9, 15)]
    assert step_lanes(spans) == step_lanes(two_ranks())
