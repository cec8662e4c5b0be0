"""The picture of an MLP over ranks: what it is told is the plan that is executed."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup

from d2lmgpu.collectives.split_mlp import execute
from d2lmgpu.course import explorers
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.split import RANKS, SHAPES, SplitMLP


def data_of(picture):
    return json.loads(BeautifulSoup(picture.html, "html.parser").script.string)


def executed(k):
    """Before and after each step what the ranks hold."""
    g = np.random.default_rng(0)
    return execute(*(g.normal(size=SHAPES[name]) for name in ("X", "A", "B", "dY")), k)


def whole(name, placement, arrays):
    """An array of all ranks, as its placement says."""
    if placement == "term":
        return sum(arrays)
    axis = {"columns": 1, "rows": 0}.get(placement)
    return arrays[0] if axis is None else np.concatenate(arrays, axis=axis)


@pytest.mark.parametrize("k", RANKS)
def test_the_script_is_told_what_each_rank_holds_when_the_plan_is_executed(k):
    plan, right = data_of(SplitMLP())["plans"][str(k)], executed(1)
    held = dict(plan["before"])
    moments = executed(k)
    assert len(moments) == len(plan["steps"]) + 1 == len(plan["words"])
    for i, (step, arrays) in enumerate(moments):
        if step:
            held |= plan["steps"][i - 1]["held"]
            assert plan["steps"][i - 1]["of"] == list(step.of)
        assert set(held) == set(arrays)
        for name, (placement, parts) in held.items():
            alone = right[i][1][name][0]
            assert np.allclose(whole(name, placement, arrays[name]), alone, rtol=1e-12, atol=1e-12)
            for array, (top, bottom, left, end) in zip(arrays[name], parts, strict=True):
                assert array.shape == (bottom - top, end - left)
                if placement != "term":
                    assert np.allclose(array, alone[top:bottom, left:end], atol=1e-12)


@pytest.mark.parametrize("k", RANKS)
def test_sums_are_where_terms_become_whole(k):
    held, sums = {}, []
    for step in data_of(SplitMLP())["plans"][str(k)]["steps"]:
        (name, *_), before = step["held"], dict(held)
        held |= step["held"]
        if step["sums"]:
            sums.append(name)
            assert (before[name][0], held[name][0]) == ("term", "whole")
    assert sums == ["Y", "dX"]


def test_words_say_who_holds_what_and_what_is_sent():
    plan = data_of(SplitMLP())["plans"]["3"]
    assert plan["words"][0] == (
        "All ranks have X. Each has 4 of 12 columns of A and the same 4 rows of B."
    )
    assert plan["words"][1] == "Each rank has 4 columns of H, 6 by 12, from its own parts. " + (
        "Nothing is sent."
    )
    assert plan["words"][4] == (
        "All 3 ranks send and add up their terms of Y, an allreduce of 24 numbers. Now all have "
        "Y, 6 by 4."
    )
    assert plan["cost"] == (
        "2 of 9 steps are sums over the ranks, of 24 and 24 numbers. All others send nothing."
    )


def test_without_scripts_words_say_the_start_and_the_sums():
    picture = explorers.split_mlp(ranks=4)
    text = BeautifulSoup(picture.html, "html.parser").get_text()
    assert repr(picture) in text and data_of(picture)["ranks"] == 4
    assert "Each has 3 of 12 columns of A" in text and "2 of 9 steps are sums" in text


@pytest.mark.parametrize("ranks", [1, 5, "4", None, True, 2.5])
def test_another_number_of_ranks_is_refused(ranks):
    with pytest.raises(FigureError):
        SplitMLP(ranks)
