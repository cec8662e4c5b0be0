"""The links between ranks, timed: messages pair by pair, then sums among all."""

import os
import socket
from itertools import combinations
from statistics import median
from time import perf_counter

import torch
from torch import distributed as dist

from d2lmgpu.machine.hardware import shared_memory
from d2lmgpu.torch.devices import synchronize, try_gpu

SMALL, FIRST, MOST = 8, 2**16, 2**26  # bytes of a message: for the latency, and for the bandwidth
ENOUGH, REPEATS = 0.05, 7  # seconds of a round trip that is long enough to be timed; how many
SUMS = (2**20, 2**23, 2**26)  # bytes that are summed
SLOW_SUM = 0.5  # seconds of a sum behind which no larger one is tried


def in_ranks() -> tuple[str, int | None, dict, list]:
    """What a rank measures, in the workers of ``launch``.

    Returns the name of its host, the bytes of shared memory there, {pair of ranks: (latency,
    bandwidth)} of the pairs whose first rank it is, and [(bytes, seconds)] of allreduces.
    """
    rank, k = dist.get_rank(), dist.get_world_size()
    device = torch.device("cpu")
    if dist.get_backend() == "nccl":
        device = try_gpu(int(os.environ["LOCAL_RANK"]))
    pairs = {}
    for pair in combinations(range(k), 2):
        dist.barrier()
        if rank in pair:
            (other,) = {*pair} - {rank}
            value = _between(other, rank < other, device)
            if rank < other:
                pairs[pair] = value
    return socket.gethostname(), shared_memory(), pairs, _sums(device)


def _between(other, first, device):
    """(latency, bandwidth) of messages to rank ``other`` and back; both ranks call it.

    The ``first`` of them says how large the next message is.
    """

    def round_trip(data):
        synchronize()
        start = perf_counter()
        for sends in (first, not first):
            (dist.send if sends else dist.recv)(data, other)
        synchronize()
        return perf_counter() - start

    data = torch.zeros(SMALL, dtype=torch.uint8, device=device)
    round_trip(data)  # makes the connection
    small = min(round_trip(data) for _ in range(10 * REPEATS))
    size, large = FIRST, small
    while size:
        data = torch.zeros(size, dtype=torch.uint8, device=device)
        round_trip(data)
        large, measured = min(round_trip(data) for _ in range(REPEATS)), size
        larger = 2 * size if large < ENOUGH and size < MOST else 0
        decided = torch.tensor([larger], device=device)
        (dist.send if first else dist.recv)(decided, other)
        size = int(decided)
    return small / 2, 2 * measured / max(large - small, 1e-9)


def _sums(device):
    """(bytes, seconds) of allreduces among all ranks, larger and larger."""
    sums = []
    for size in SUMS:
        data, seconds = torch.zeros(size // 4, device=device), []
        for _ in range(REPEATS + 1):
            dist.barrier()
            synchronize()
            start = perf_counter()
            dist.all_reduce(data)
            synchronize()
            seconds.append(perf_counter() - start)
        slowest = torch.tensor([median(seconds[1:])], dtype=torch.float64, device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        sums.append((size, slowest.item()))
        if slowest.item() > SLOW_SUM:
            break
    return sums
