"""The timetable of a pipeline: against formulas, a clock that ticks, and PyTorch's own lists."""

import json

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from pipelines import SCHEDULES, gpipe, interleaved, one_f_one_b
from torch.distributed.pipelining import schedules as theirs

from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.pipeline import PipelineTimeline, timetable

RANKS, NUMBERS = st.integers(1, 6), st.integers(1, 9)
GOOD = {"schedules": SCHEDULES, "ranks": [2, 4], "micro_batches": [1, 8], "about": "<A>"}


def lists(order, p, m):
    return [order(rank, p, m) for rank in range(p)]


def ticked(orders, ticks):
    """The same by a clock: at each tick whoever is free begins, if what it needs is over."""
    last = max((*op, rank)[2] for rank, order in enumerate(orders) for op in order)
    begun, over, free, now = {}, {}, [0] * len(orders), 0
    todo = [[(*op, rank)[:3] for op in order] for rank, order in enumerate(orders)]
    while any(todo):
        for rank, order in enumerate(todo):
            if not order or free[rank] > now:
                continue
            kind, i, stage = order[0]
            if kind == "F":
                ready = stage == 0 or over.get(("F", i, stage - 1), 1e9) <= now
            else:
                behind = stage == last or over.get(("B", i, stage + 1), 1e9) <= now
                ready = behind and over.get(("F", i, stage), 1e9) <= now
            if ready:
                begun[kind, i, stage] = now
                over[kind, i, stage] = free[rank] = now + ticks[kind]
                order.pop(0)
        now += 1
        assert now < 10_000
    return begun, over


@pytest.mark.parametrize("order", SCHEDULES.values(), ids=SCHEDULES)
@given(p=RANKS, m=NUMBERS, ticks=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_operations_run_as_early_as_a_clock_lets_them(order, p, m, ticks):
    if m % max(1, m // p):
        m = p  # interleaved stages take micro-batches in equal turns
    orders = lists(order, p, m)
    several = 2 if order is interleaved else 1
    ticks = dict(zip("FB", ticks, strict=True))
    modelled = timetable(orders, {kind: several * of for kind, of in ticks.items()})
    begun, over = ticked(orders, ticks)
    spans = [span for of in modelled.spans for span in of]
    assert {(kind, i, s): start for kind, i, s, start, _ in spans} == begun
    assert {(kind, i, s): end for kind, i, s, _, end in spans} == over
    assert [[span[:2] for span in of] for of in modelled.spans] == [
        [op[:2] for op in of] for of in orders
    ]


@given(p=RANKS, m=NUMBERS)
def test_the_bubble_and_what_is_kept_are_those_of_the_papers(p, m):
    for order in (gpipe, one_f_one_b):
        modelled = timetable(lists(order, p, m))
        assert modelled.total == pytest.approx(3 * (m + p - 1))
        assert modelled.idle == pytest.approx((p - 1) / (m + p - 1))
    assert modelled.kept == [min(m, p - rank) for rank in range(p)]
    assert timetable(lists(gpipe, p, m)).kept == [m] * p
    plan = timetable(lists(interleaved, p, p * m))
    assert plan.idle == pytest.approx((p - 1) / (2 * p * m + p - 1))


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 2)])
def test_interleaved_lists_are_those_of_pytorch(p, m):
    several = m // max(1, m // p)
    for rank in range(p):
        ahead = theirs._get_warmup_ops(rank, 2, several, p, m)
        actions = theirs._get_1f1b_rank_ops(
            2,
            p,
            ahead,
            2 * m - ahead,
            ahead,
            rank,
            lambda step, rank=rank: step // several % 2 * p + rank,
            lambda step, rank=rank, ahead=ahead: (1 - (step - ahead) // several % 2) * p + rank,
        )
        assert interleaved(rank, p, m) == [
            (a.computation_type.value, a.microbatch_index, a.stage_index) for a in actions if a
        ]


def test_a_backward_pass_in_two_parts_waits_for_its_input_only():
    orders = [
        [("F", 0), ("F", 1), ("I", 0), ("I", 1), ("W", 0), ("W", 1)],
        [("F", 0), ("I", 0), ("F", 1), ("I", 1), ("W", 0), ("W", 1)],
    ]
    modelled = timetable(orders)
    starts = [[(kind, i, start) for kind, i, _, start, _ in of] for of in modelled.spans]
    assert starts[0] == [
        ("F", 0, 0),
        ("F", 1, 1),
        ("I", 0, 3),
        ("I", 1, 5),
        ("W", 0, 6),
        ("W", 1, 7),
    ]
    assert starts[1][-1] == ("W", 1, 6) and modelled.total == 8 and modelled.idle == 1 / 4
    assert modelled.kept == [2, 2], "kept until the gradient of the weights is there"


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        (
            [[("F", 0), ("B", 0), ("F", 1), ("B", 1)], gpipe(1, 2, 2)],
            "rank 0 cannot run ('B', 0, 0)",
        ),
        ([[("B", 0), ("F", 0)]], "rank 0 cannot run ('B', 0, 0)"),
        ([[("F", 0)], [("F", 1)]], "rank 1 cannot run ('F', 1, 1)"),
        ([[("F", 0), ("F", 0)]], "is twice"),
        ([[("W", 0), ("F", 0)]], "cannot run ('W', 0, 0)"),
        ([[("B", 0)], []], "orders is"),
        ([], "orders is"),
        (3, "orders is"),
        ([[("X", 0)]], "orders is"),
        ([[("F", -1)]], "orders is"),
        ([[("F", 0, 1, 2)]], "orders is"),
    ],
)
def test_orders_that_never_end_or_are_none_are_refused(orders, words):
    with pytest.raises(FigureError) as raised:
        timetable(orders)
    assert words in str(raised.value)


@pytest.mark.parametrize("seconds", [{}, {"F": 1.0}, {"F": 0, "B": 1}, {"F": "x", "B": 1}, 3])
def test_an_operation_that_takes_no_time_or_is_not_named_is_refused(seconds):
    with pytest.raises(FigureError):
        timetable(lists(gpipe, 2, 2), seconds)


def test_the_script_is_told_the_timetables_and_without_scripts_words_say_the_first():
    picture = PipelineTimeline(**GOOD, start=("1F1B", 4, 8))
    data = json.loads(BeautifulSoup(picture.html, "html.parser").script.string)
    assert data["start"] == {"schedule": "1F1B", "ranks": "4", "micro": "8"}
    for name, order in SCHEDULES.items():
        for p in GOOD["ranks"]:
            for m in GOOD["micro_batches"]:
                plan, in_page = timetable(lists(order, p, m)), data["plans"][name][str(p)][str(m)]
                assert in_page["spans"] == [[list(span) for span in of] for of in plan.spans]
                assert in_page["idle"] == pytest.approx(plan.idle, abs=1e-6)
                assert in_page["kept"] == plan.kept
    assert repr(picture) == (
        "1F1B, 4 ranks, 8 micro-batches: each rank is idle 27% of the time, and they keep at most "
        "4, 3, 2, 1 micro-batches, modelled."
    )
    text = BeautifulSoup(picture.html, "html.parser").get_text()
    assert repr(picture) in text and "<A>" in text
    assert repr(PipelineTimeline(**GOOD)).startswith("GPipe, 2 ranks, 1 micro-batches")


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedules": {}},
        {"schedules": {"x": 3}},
        {"schedules": {"x": lambda rank, p, m: [("B", 0)]}},
        {"ranks": []},
        {"ranks": [0]},
        {"ranks": 2},
        {"micro_batches": [65]},
        {"micro_batches": None},
        {"about": None},
        {"start": "1F1B"},
        {"start": ("1F1B", 3, 8)},
        {"start": ("1F1B", 4, 3)},
        {"start": ("2F2B", 4, 8)},
    ],
)
def test_what_is_no_pipeline_is_refused(wrong):
    with pytest.raises(FigureError):
        PipelineTimeline(**GOOD | wrong)
