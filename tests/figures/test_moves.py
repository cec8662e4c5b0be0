"""The explorer of collectives: what it draws and says is what the executed plans leave."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup
from numpy_collectives import expected

from d2lmgpu.collectives.execution import carry_out
from d2lmgpu.collectives.operations import COLLECTIVES, collective
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.moves import CALLS, RANKS, CollectiveExplorer
from d2lmgpu.figures.site import PACKAGE

KINDS = [
    (name, algorithm, k)
    for name, algorithms in COLLECTIVES.items()
    for algorithm in algorithms
    for k in RANKS
]


def data_of(*names, **options):
    html = CollectiveExplorer(*names, **options).html
    return json.loads(BeautifulSoup(html, "html.parser").script.string)


@pytest.fixture(scope="module")
def plans():
    return {name: of["plans"] for name, of in data_of()["collectives"].items()}


def summed(cell, slot, given):
    """What a cell of the picture stands for, where rank r holds the numbers given[r]."""
    letter, bits = cell
    place = slot if letter == "here" else "abcd".index(letter)
    return sum(given[rank, place] for rank in range(len(given)) if bits >> rank & 1)


@pytest.mark.parametrize(("name", "algorithm", "k"), KINDS)
def test_the_last_picture_is_what_numpy_says_and_what_the_plan_leaves(plans, name, algorithm, k):
    plan = plans[name][str(k)][algorithm]
    given = np.random.default_rng(k).integers(1, 1000, (k, k))
    drawn = [
        [summed(plan["cells"][-1][rank][slot], slot, given) for slot in plan["result"][rank]]
        for rank in range(k)
    ]
    assert drawn == [list(values) for values in expected(name, given)]
    wanted = collective(name, k, k, algorithm)
    arrays = [np.zeros(wanted.schedule.size, int) for _ in range(k)]
    for rank, parts in enumerate(wanted.held):
        for part in parts:
            arrays[rank][part] = given[rank][[place % k for place in part]]
    carry_out(wanted.schedule, arrays)
    left = [
        [int(arrays[rank][place]) for part in parts for place in part]
        for rank, parts in enumerate(wanted.result)
    ]
    assert drawn == left


@pytest.mark.parametrize(("name", "algorithm", "k"), KINDS)
def test_what_moves_is_what_the_plan_sends_and_the_first_picture_is_before(
    plans, name, algorithm, k
):
    plan, wanted = plans[name][str(k)][algorithm], collective(name, k, k, algorithm)
    links = [[(source, target) for source, _, target, _ in of] for of in plan["moves"]]
    assert links == [
        [(send.source, send.target) for send in sends for _ in range(len(send))]
        for sends in wanted.schedule.rounds
    ]
    assert len(plan["cells"]) == len(plan["words"]) == len(plan["sent"]) + 1
    for round, moves in enumerate(plan["moves"]):
        before, after = plan["cells"][round : round + 2]
        for source, slot, target, there in moves:
            letter, bits = before[source][slot]
            assert after[target][there][0] == letter and after[target][there][1] & bits == bits
    for rank, cells in enumerate(plan["cells"][0]):
        assert {bits for _, bits in cells} <= {0, 1 << rank}, "at first everybody has only its own"


def test_words_say_who_holds_what_and_who_sends_what(plans):
    ring = plans["reduce_scatter"]["3"]["ring"]
    assert ring["words"][0] == [
        "Rank 0: a0, b0, c0.",
        "Rank 1: a1, b1, c1.",
        "Rank 2: a2, b2, c2.",
    ]
    assert ring["sent"][0] == (
        "rank 0 sends c0 to rank 1; rank 1 sends a1 to rank 2; rank 2 sends b2 to rank 0"
    )
    assert ring["words"][-1][0] == "Rank 0: a0 + a1 + a2; left over: b0 + b2, c0."
    assert plans["reduce"]["2"]["tree"]["words"][-1][1] == "Rank 1: nothing; left over: a1, b1."
    assert "rank 0 sends a0, b0 and c0 to rank 1" in plans["send"]["3"]["direct"]["sent"][0]
    assert ring["cost"].startswith("2 rounds; the rank that sends most sends 0.667 times")
    assert plans["barrier"]["4"]["dissemination"]["cost"] == "2 rounds."


def test_without_scripts_words_say_who_holds_what_before_and_after():
    explorer = CollectiveExplorer("all_gather", "barrier", ranks=2)
    text = BeautifulSoup(explorer.html, "html.parser").get_text()
    assert repr(explorer) in text
    assert "Before: Rank 0: a0. Rank 1: b1. After: Rank 0: a0, b1. Rank 1: a0, b1." in text
    assert list(data_of("all_gather", "barrier")["collectives"]) == ["all_gather", "barrier"]
    assert list(data_of()["collectives"]) == list(CALLS) == list(COLLECTIVES)


@pytest.mark.parametrize(
    ("names", "ranks"), [(["gather"], 4), ([None], 4), ([], 1), ([], 5), ([], "4"), ([], True)]
)
def test_what_cannot_be_drawn_is_refused(names, ranks):
    with pytest.raises(FigureError):
        CollectiveExplorer(*names, ranks=ranks)


@pytest.mark.parametrize(
    ("pictures", "most"),
    [
        # of the first half: collectives, rings and trees, buckets, DataParallel beside DDP
        (("moves", "race", "buckets", "swimlanes"), 40_000),
        (("moves", "race", "buckets", "context", "pipeline"), 50_000),
    ],
)
def test_all_that_moves_is_a_small_script(pictures, most):
    scripts = [PACKAGE / "figures" / f"{name}.js" for name in ("motion", *pictures)]  # the clock
    assert sum(script.stat().st_size for script in scripts) <= most
