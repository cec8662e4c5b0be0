"""The plan of ring attention: nothing is left out, nothing is hidden, and who computes how much."""

import pytest

from d2lmgpu.collectives.ring_attention import contiguous, pairs, zigzag

RANKS = (1, 2, 3, 4, 7, 16)


def computed(held):
    """[(step, rank, chunk of queries, chunk of keys)]"""
    ranks = range(len(held))
    return [(step, r, *pair) for step in ranks for r in ranks for pair in pairs(held, r, step)]


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("deal", [contiguous, zigzag])
def test_each_chunk_has_one_rank_and_each_pair_that_is_not_hidden_is_computed_once(deal, n):
    held = deal(n)
    assert sorted(chunk for chunks in held for chunk in chunks) == [*range(2 * n)]
    pairs = computed(held)
    assert sorted((i, j) for *_, i, j in pairs) == [
        (i, j) for i in range(2 * n) for j in range(i + 1)
    ]
    assert all(i in held[rank] for _, rank, i, _ in pairs), "queries stay with their rank"


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("deal", [contiguous, zigzag])
def test_the_keys_of_a_round_are_those_that_so_many_hops_have_brought(deal, n):
    held = deal(n)
    keys_of = [*held]  # whose keys each rank has
    for step in range(n):
        for _, rank, _, j in (pair for pair in computed(held) if pair[0] == step):
            assert j in keys_of[rank]
        keys_of = [keys_of[rank - 1] for rank in range(n)]  # all pass on, the last to the first


def test_contiguous_ranks_compute_the_more_the_later_and_zigzag_ones_the_same():
    def counts(held):
        ranks = [rank for _, rank, *_ in computed(held)]
        return [ranks.count(rank) for rank in range(len(held))]

    assert counts(contiguous(4)) == [3, 7, 11, 15] and counts(zigzag(4)) == [9, 9, 9, 9]
    assert counts([[0], [1], [2]]) == [1, 2, 3], "with one chunk each"
