"""Runs whose times are given: the reports of their ranks, of each cause."""

from d2lmgpu.watch.explain.summary import Summary

FACTS = {
    "rows": 640,
    "elements": 6400,
    "measured_backwards": 10,
    "exchanging": 10,
    "calls": [],
    "exchanged": 0,
    "operations": 100,
    "doubles": 0.0,
    "casts": 0.0,
    "others": [],
    "python_threads": 0.0,
    "framework": "torch",
    "threads": 1,
    "cores": [0, 1],
    "ddp": True,
    "data_parallel": None,
    "gradient_bytes": 10**6,
    "loaders": [],
    "distributed": True,
    "measured": 10,
    "spans": [],
    "faults": 0,
    "set": {},
    "environ": {},
}


def rank(number, forward=10, backward=10, waits=0, queued=0, **more):
    """A report of ten equal steps; milliseconds. It waits in backward, and queues in both."""
    loading, other = more.pop("loading", 0), more.pop("other", 0)
    seconds_of = {"loading": loading, "forward": forward, "other": other}
    parts = {name: [ms / 1e3, ms / 1e3, 0.0] for name, ms in seconds_of.items()}
    parts["forward"] = [(forward + queued) / 1e3, forward / 1e3, queued / 1e3]
    parts["backward"] = [(backward + waits + queued) / 1e3, backward / 1e3, queued / 1e3]
    length = sum(wall for wall, *_ in parts.values())
    steps = [(i * length, (i + 1) * length, parts) for i in range(10)]
    lines = [
        ["forward", "train.py:5", 9],
        ["backward", "train.py:6", 9],
        ["loading", "train.py:4", 9],
        ["other", "train.py:8", 9],
    ]
    own = {"prints": [number * 100 + i for i in range(10)]}
    return FACTS | own | {"rank": number, "measured_steps": steps, "lines": lines} | more


ONE_DEVICE = Summary([rank(0, 20, 20, rows=1280)])
CASES = {
    "none": [rank(0), rank(1)],
    "loader": [rank(0, loading=30), rank(1, loading=30)],
    "straggler": [rank(0, 5, 5, waits=20), rank(1, 15, 15)],
    "rank0-work": [rank(0, other=20), rank(1, waits=20)],
    "slow-exchange": [rank(i, waits=20, gradient_bytes=10**8) for i in (0, 1)],
    "small-batch": [rank(i, waits=20, rows=40) for i in (0, 1)],
    "no-overlap": [rank(i, waits=20, exchanging=80, measured_backwards=80) for i in (0, 1)],
    "data-parallel": [rank(i, ddp=False) for i in (0, 1)],
    "whole-data": [rank(i, rows=1280, prints=[7] * 10) for i in (0, 1)],
    "shared-core": [rank(i, cores=[0]) for i in (0, 1)],
    "threads": [rank(i, threads=8) for i in (0, 1)],
    "slow-dtype": [rank(i, doubles=0.9) for i in (0, 1)],
    "python": [rank(i, python_threads=0.2) for i in (0, 1)],
    "host-bound": [rank(i, operations=2000) for i in (0, 1)],
    "sync": [
        rank(i, other=9, calls=[["barrier", "train.py:9", 100, 0, 0.09, 0.09]]) for i in (0, 1)
    ],
}
