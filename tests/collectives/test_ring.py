"""The ring between processes against NumPy's sum."""

import numpy as np
import torch

from d2lmgpu.collectives.ring import SEGMENT, ring_allreduce
from d2lmgpu.launch import launch

SIZES = [0, 1, 2, 3, 4, 100, 3 * SEGMENT + 5]
DTYPES = ["int64", "float32", "float64"]


def numbers(rank, size, dtype):
    """Integers between -1000 and 1000: every sum of a few is exact in each of the types."""
    return np.random.RandomState(100 * rank + size % 97).randint(-1000, 1000, size).astype(dtype)


def sums():
    import torch.distributed as dist

    results = []
    for size in SIZES:
        for dtype in DTYPES:
            data = torch.from_numpy(numbers(dist.get_rank(), size, dtype))
            ring_allreduce(data)
            results.append(data.numpy())
    return results


def test_every_rank_ends_with_numpys_sum(monkeypatch):
    for k in (1, 3):
        monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:3")
        expected = [
            np.sum([numbers(rank, size, dtype) for rank in range(k)], axis=0, dtype=dtype)
            for size in SIZES
            for dtype in DTYPES
        ]
        for results in launch(sums, num_processes=k):
            for ours, sure in zip(results, expected, strict=True):
                assert ours.dtype == sure.dtype and np.array_equal(ours, sure)


def refused():
    messages = []
    for data in (torch.zeros(2, 2), torch.zeros(4)[::2], torch.tensor(1.0)):
        try:
            ring_allreduce(data)
        except ValueError as error:
            messages.append(str(error))
    return messages


def test_what_the_ring_cannot_add_is_named():
    messages = launch(refused, num_processes=1)[0]
    assert [message.split(":")[0] for message in messages] == [
        "data has shape (2, 2)",
        "data has shape (2,)",
        "data has shape ()",
    ]


def on_a_device_that_gloo_cannot_send_from():
    data = torch.zeros(3, device="meta")
    try:
        ring_allreduce(data)
    except ValueError as error:
        return str(error)


def test_gloo_and_a_gpu_are_refused(monkeypatch):
    """It would read the GPU's memory as the CPU's."""
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:2")
    for text in launch(on_a_device_that_gloo_cannot_send_from, num_processes=2):
        assert "give data.cpu()" in text
