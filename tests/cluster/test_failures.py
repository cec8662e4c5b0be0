"""A training on three hosts goes on after each harm, with the weights that it would have had.

One of each harm; ``make soak`` has five of each, at random moments.
"""

from rounds import SAVE_EVERY, other_ranks, same_ranks

SECONDS = 30  # until training goes on


def cheap(rows):
    return all(r["seconds"] < SECONDS and r["repeated"] <= SAVE_EVERY for r in rows)


def test_the_same_ranks_end_bit_for_bit(three_hosts, tmp_path):
    found = same_ranks(three_hosts, tmp_path)
    assert cheap(found["rows"]), found
    assert found["rows"][-1]["repeated"] == 0, "SIGTERM did not save"
    assert found["apart"] == 0


def test_other_ranks_end_where_one_would(three_hosts, tmp_path):
    found = other_ranks(three_hosts, tmp_path)
    assert cheap(found["rows"]), found
    assert found["apart"] < 1e-5
