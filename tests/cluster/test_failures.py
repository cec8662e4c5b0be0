"""A training on three hosts goes on after each harm, with the weights that it would have had.

One of each harm; ``make soak`` has five of each, at random moments.
"""

from rounds import SAVE_EVERY, other_ranks, same_ranks

SECONDS = 30  # until training goes on


def cheap(rows):
    return all(r["seconds"] < SECONDS and r["repeated"] <= SAVE_EVERY for r in rows)


def test_the_same_ranks_end_bit_for_bit(three_hosts, tmp_path):
    rows, apart = same_ranks(three_hosts, tmp_path)
    assert cheap(rows), rows
    assert next(r["repeated"] for r in rows if r["harm"].startswith("SIGTERM")) == 0
    assert apart == 0


def test_other_ranks_end_where_one_would(three_hosts, tmp_path):
    rows, apart = other_ranks(three_hosts, tmp_path)
    assert cheap(rows), rows
    assert apart < 1e-5
