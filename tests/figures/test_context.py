"""The picture of ring attention: what it is told is the plan that the page executes."""

import json

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.collectives.ring_attention import contiguous, pairs, zigzag
from d2lmgpu.course import explorers
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.context import RANKS, RingAttention

DEALS = {"Contiguous": contiguous, "Zigzag": zigzag}


def data_of(picture):
    return json.loads(BeautifulSoup(picture.html, "html.parser").script.string)


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("algorithm", DEALS)
def test_the_script_is_told_the_plan(n, algorithm):
    plan, held = data_of(RingAttention())["plans"][str(n)][algorithm], DEALS[algorithm](n)
    assert plan["held"] == held and len(plan["rounds"]) == n == len(plan["words"]) - 1
    for step, computed in enumerate(plan["rounds"]):
        for rank in range(n):
            mine = [(i, j) for of, i, j in computed if of == rank]
            assert mine == pairs(held, rank, step)


def test_words_say_who_computes_what_and_how_long_all_wait():
    plans = data_of(RingAttention())["plans"]["4"]
    assert plans["Contiguous"]["cost"] == (
        "Ranks 0 to 3 compute 3, 7, 11, 15 pairs of chunks; with all waiting for the busiest of "
        "each round it takes as long as 15 pairs."
    )
    assert "compute 9, 9, 9, 9 pairs" in plans["Zigzag"]["cost"]
    assert plans["Zigzag"]["cost"].endswith("as long as 9 pairs.")
    words = plans["Contiguous"]["words"]
    assert words[0].startswith("Rank 0 has chunks 0 and 1. Rank 1 has chunks 2 and 3.")
    assert words[2] == (
        "Round 2, pairs computed: rank 0 nothing with the keys of rank 3, rank 1 4 with the keys "
        "of rank 0, rank 2 4 with the keys of rank 1, rank 3 4 with the keys of rank 2. The round "
        "takes as long as 4 pairs."
    )


def test_without_scripts_words_say_the_work_of_both_ways():
    picture = explorers.ring_attention(ranks=2)
    text = BeautifulSoup(picture.html, "html.parser").get_text()
    assert repr(picture) in text and data_of(picture)["ranks"] == 2
    assert "Contiguous: Ranks 0 to 1 compute 3, 7 pairs" in text
    assert "Zigzag: Ranks 0 to 1 compute 5, 5 pairs" in text


@pytest.mark.parametrize("ranks", [1, 5, "4", None, True, 2.5])
def test_another_number_of_ranks_is_refused(ranks):
    with pytest.raises(FigureError):
        RingAttention(ranks)
