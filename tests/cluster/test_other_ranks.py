"""A training goes on with the hosts that are left; in soak, too, with one that comes back.

See ``test_failures.py``, beside which this runs.
"""

from rounds import cheap, other_ranks


def test_other_ranks_end_where_one_would(three_hosts, tmp_path):
    found = other_ranks(three_hosts, tmp_path, names=["host killed"])
    assert cheap(found["rows"]), found
    assert found["apart"] < 1e-5
