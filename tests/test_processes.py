"""The ring between processes against NumPy's sum, and the probe's shape."""

import numpy as np
import torch

from d2lmgpu import processes
from d2lmgpu.launch import launch
from d2lmgpu.processes import SEGMENT, probe, ring_allreduce

SIZES = [0, 1, 2, 3, 4, 100, 3 * SEGMENT + 5]
DTYPES = ["int64", "float32", "float64"]


def numbers(rank, size, dtype):
    """Integers between -1000 and 1000: every sum of a few is exact in each of the types."""
    return np.random.RandomState(100 * rank + size % 97).randint(-1000, 1000, size).astype(dtype)


def sums():
    import torch.distributed as dist

    found = []
    for size in SIZES:
        for dtype in DTYPES:
            data = torch.from_numpy(numbers(dist.get_rank(), size, dtype))
            ring_allreduce(data)
            found.append(data.numpy())
    return found


def test_every_rank_ends_with_numpys_sum(monkeypatch):
    for k in (1, 3):
        monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:3")
        expected = [
            np.sum([numbers(rank, size, dtype) for rank in range(k)], axis=0, dtype=dtype)
            for size in SIZES
            for dtype in DTYPES
        ]
        for found in launch(sums, num_processes=k):
            for ours, sure in zip(found, expected, strict=True):
                assert ours.dtype == sure.dtype and np.array_equal(ours, sure)


def refused():
    said = []
    for data in (torch.zeros(2, 2), torch.zeros(4)[::2], torch.tensor(1.0)):
        try:
            ring_allreduce(data)
        except ValueError as error:
            said.append(str(error))
    return said


def test_what_the_ring_cannot_add_is_named():
    said = launch(refused, num_processes=1)[0]
    assert [message.split(":")[0] for message in said] == [
        "data has shape (2, 2)", "data has shape (2,)", "data has shape ()"
    ]  # fmt: skip


def few_repeats():
    processes.REPEATS = 2
    return probe()


def test_all_ranks_time_the_same_things(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    first, second = launch(few_repeats, num_processes=2)
    assert list(first) == list(second)
    assert {(what, k) for what, k, _ in first} == {("compute", 1), ("compute", 2), ("exchange", 2)}
    assert len(first) == 2 + 2 + 4
    assert all(len(times) == 2 and min(times) > 0 for times in first.values())
    alone = max(key for key in first if key[:2] == ("compute", 1))
    assert sum(second[alone]) < sum(first[alone])  # the other rank has nothing to do
