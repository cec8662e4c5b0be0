"""What the rules make of steps whose times are given: no script runs here."""

import json

import pytest
from reports import CASES, ONE_DEVICE, rank

from d2lmgpu.watch.explain import costs, facts
from d2lmgpu.watch.explain.causes import Kind
from d2lmgpu.watch.explain.page import chrome_trace, timelines
from d2lmgpu.watch.explain.pair import answer
from d2lmgpu.watch.explain.rules import verdict
from d2lmgpu.watch.explain.summary import Summary


@pytest.mark.parametrize("name", CASES)
def test_each_cause_is_named(name):
    cause, _ = verdict(Summary(CASES[name]), ONE_DEVICE)
    assert (cause.name if cause else "none") == name
    if cause:
        assert cause.sentence and cause.mend


def test_every_cause_has_a_case():
    kinds = [kind for room in (facts, costs) for kind in vars(room).values() if type(kind) is Kind]
    assert set(CASES) == {*[kind.name for kind in kinds], "none"}


def test_what_others_take_does_not_count():
    quiet, busy = Summary([rank(0), rank(1)]), Summary([rank(0, queued=50), rank(1, queued=50)])
    assert busy.seconds == pytest.approx(quiet.seconds) == pytest.approx(0.020)
    assert busy.queued == pytest.approx(5 / 6) and quiet.queued == 0


def test_waiting_for_a_peer_is_no_exchange():
    run = Summary([rank(0, 5, 5, waits=20), rank(1, 15, 15)])
    assert run.exchange == 0 and run.seconds == pytest.approx(0.030)
    assert run.speedup(ONE_DEVICE) == pytest.approx(0.040 / 0.030)


def test_a_speedup_that_devices_cannot_give_is_none(calibrated):
    fast = Summary([rank(0, 5, 5), rank(1, 5, 5)])  # four times as fast on two devices
    explanation = answer("train.py", ONE_DEVICE, fast)
    assert explanation.as_dict()["speedup"]["measured"] is None and "not explained" in str(
        explanation
    )
    assert "Why is not known" in explanation.notes[-1] and "4.00 times" in explanation.notes[-1]
    slow = Summary([rank(0, 20, 20, rows=1280, faults=10 * 10_000)])  # 20 ms of 40 ms
    explanation = answer("train.py", slow, fast)
    assert (
        "50% of a step" in explanation.notes[-1]
        and "MALLOC_TRIM_THRESHOLD_" in explanation.notes[-1]
    )
    right = answer("train.py", ONE_DEVICE, Summary([rank(0), rank(1)])).as_dict()["speedup"]
    assert right["measured"] == 2 and 1.9 < right["predicted"] < 2


def test_ranks_that_take_the_cores_from_each_other_queue_by_their_own_doing(calibrated):
    pinned = Summary([rank(i, queued=10, cores=[1], set={"cores": "train.py:3"}) for i in (0, 1)])
    explanation = answer("train.py", ONE_DEVICE, pinned)
    assert pinned.crowded and pinned.seconds == pytest.approx(0.040)
    assert (
        explanation.as_dict()["speedup"]["measured"] == 1
        and explanation.cause.where == "train.py:3"
    )


def test_a_variable_of_the_environment_is_named():
    facts = {"threads": 8, "environ": {"OMP_NUM_THREADS": "8"}}
    cause, _ = verdict(Summary([rank(i, **facts) for i in (0, 1)]), ONE_DEVICE)
    assert cause.where is None and "OMP_NUM_THREADS=8" in cause.sentence
    by_line = facts | {"set": {"OMP_NUM_THREADS": "train.py:2"}}
    cause, _ = verdict(Summary([rank(i, **by_line) for i in (0, 1)]), ONE_DEVICE)
    assert cause.where == "train.py:2"


def test_a_batch_that_is_no_first_dimension_is_counted_by_its_values():
    summary = Summary([rank(0, 20, 20, rows=350, elements=35 * 640)])  # 35 words of 64 texts
    run = Summary([rank(i, rows=350, elements=35 * 320) for i in (0, 1)])
    assert run.rows == 70 and run.rows_like(summary) == 35 and run.speedup(summary) == 2
    assert not any(cause.name == "whole-data" for cause in verdict(run, summary)[1])


def test_a_loader_over_all_rows_is_seen_where_the_batch_is_divided_too():
    loader = {"where": "train.py:2", "of": 999, "mine": 999, "batch": 64, "workers": 0, "epochs": 1}
    summary = Summary([rank(0, 20, 20, rows=1280, loaders=[loader | {"batch": 128}])])
    cause, _ = verdict(Summary([rank(i, loaders=[loader]) for i in (0, 1)]), summary)
    assert (cause.name, cause.where) == ("whole-data", "train.py:2")
    sliced = Summary([rank(i, loaders=[loader | {"batch": 128}]) for i in (0, 1)])
    assert verdict(sliced, summary)[0] is None  # each rank takes its rows of every batch


def test_a_call_costs_at_most_the_step_though_a_peer_has_no_core():
    calls = [["barrier", "train.py:9", 10, 0, 0.9, 0.9]]  # 90 ms in steps of 100 ms, 20 of them own
    run = Summary([rank(i, calls=calls, waits=80 * i) for i in (0, 1)])
    cause, _ = verdict(run, ONE_DEVICE)
    assert cause.name == "sync" and cause.share == pytest.approx(0.9)


def test_the_trace_is_chrome_s():
    spans = [(4, "forward", 1.0, 1.5), (5, "backward", 1.5, 2.0)]
    run = Summary([rank(0, spans=spans), rank(1, spans=spans)])
    events = json.loads(json.dumps(chrome_trace(run)))["traceEvents"]
    drawn_spans = [event for event in events if event["ph"] == "X"]
    assert [event["ts"] for event in drawn_spans] == [0, 5e5] * 2
    assert all(event["dur"] == 5e5 for event in drawn_spans)
    assert "rank 1: forward from 0 to 500 ms, backward from 500 to 1e+03 ms" in timelines(run)
    assert timelines(Summary([rank(0, spans=spans), rank(1)])) == ""


@pytest.mark.parametrize("bytes_a_step, apart", [(4, True), (10**6, False), (5 * 10**5, False)])
def test_who_sends_gradients_does_not_train_apart_whoever_sends_them(bytes_a_step, apart):
    """A loss that is averaged is no gradient; ZeRO, FSDP and a ring send no less than half."""
    run = Summary([rank(i, ddp=False, exchanged=10 * bytes_a_step) for i in (0, 1)])
    names = [
        cause.name for cause in (verdict(run, ONE_DEVICE)[0], *verdict(run, ONE_DEVICE)[1]) if cause
    ]
    assert ("data-parallel" in names) == apart
