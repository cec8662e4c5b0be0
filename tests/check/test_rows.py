"""Rows of k ranks and of one process: the same in any order, and counted."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.watch.check.rows import same

ROWS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12)


def update(rows, **more):
    return {"Net.0": dict(Counter(rows))} | {key: dict(Counter(v)) for key, v in more.items()}


@given(ROWS, ROWS, st.randoms())
def test_order_and_rank_are_free(first, second, chance):
    both = first + second
    chance.shuffle(both)
    assert same([update(first), update(second)], update(both)) == (True, len(both), len(both))


@given(ROWS, ROWS, st.integers(0, 11))
def test_another_row_is_seen(first, second, place):
    both = first + second
    both[place % len(both)] = "another"
    equal, common, total = same([update(first), update(second)], update(both))
    assert not equal and common == total - 1 == len(both) - 1


def test_a_mask_that_all_have_is_no_data():
    mask = ["row"] * 3
    ranks = [update("ab", mask=mask), update("cd", mask=mask)]
    assert same(ranks, update("abcd", mask=mask))[0]
    assert not same(ranks, update("abcd", mask=["other"] * 3))[0]


def test_the_batch_of_one_rank_is_not_that_of_all():
    assert not same([update("ab"), update("ab")], update("ab"))[0]
    assert not same([{}, {}], {})[0]
