"""Five of each harm at random moments: ``pytest -s tests/cluster/soak_failures.py``, as root.

What it cost becomes the record that the page shows.
"""

import random
from statistics import median

import pytest
from elastic_run import BATCH, NUM_TRAIN
from mxnet_ends import ROLES, ends
from rounds import SAVE_EVERY, cheap, other_ranks, same_ranks

from d2lmgpu.records import store

TIMES = 5
MEDIAN, LONGEST = 10, 30  # seconds until training goes on
OUTCOMES, ENDED = {same_ranks: [], other_ranks: []}, []


def record():
    """What all rounds have found."""
    same, other = OUTCOMES[same_ranks], OUTCOMES[other_ranks]
    return store.provenance("pytest -s tests/cluster/soak_failures.py") | {
        "data": f"{NUM_TRAIN} images of Fashion-MNIST, a batch of {BATCH} over three hosts, "
        "links of 100 Mbit/s",
        "save_every": SAVE_EVERY,
        "rows": [row for outcome in same + other for row in outcome["rows"]],
        "apart": {
            "same ranks": max(outcome["apart"] for outcome in same),
            "other ranks": max(outcome["apart"] for outcome in other),
        },
        "timeline": other[0]["lives"],
        "mxnet": ENDED,
    }


@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("harmed", OUTCOMES)
def test_it_goes_on(harmed, number, three_hosts, tmp_path):
    outcome = harmed(three_hosts, tmp_path, seed=number)
    OUTCOMES[harmed].append(outcome)
    assert cheap(outcome["rows"]), outcome
    assert all(row["seconds"] < LONGEST for row in outcome["rows"]), outcome
    assert outcome["apart"] == 0 if harmed is same_ranks else outcome["apart"] < 1e-5


@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("role", ROLES)
def test_mxnet_ends_in_words(role, number, three_hosts, tmp_path):
    ENDED.append(ends(three_hosts, tmp_path, role, delay=2 * random.Random(number).random()))
    print(ENDED[-1], flush=True)
    assert ENDED[-1]["seconds"] < LONGEST


def test_the_table():
    """Last: of all that went before."""
    assert all(len(outcomes) == TIMES for outcomes in OUTCOMES.values())
    rows = record()["rows"]
    for name in dict.fromkeys(row["harm"] for row in rows):
        seconds = [row["seconds"] for row in rows if row["harm"] == name]
        print(f"{name}: median {median(seconds):.1f} s, at most {max(seconds):.1f} s")
    for role in ROLES:
        seconds = [row["seconds"] for row in ENDED if row["role"] == role]
        print(f"MXNet's {role} killed: ended in words, median {median(seconds):.1f} s")
    assert median(row["seconds"] for row in rows) <= MEDIAN
    print("Written to", store.write("records", "failures", record()))
