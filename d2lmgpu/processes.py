"""What the worker processes of ``launch`` do together, over torch.distributed."""

from itertools import zip_longest

import torch
import torch.distributed as dist

from d2lmgpu import torch as d2l
from d2lmgpu.calibration import REPEATS, Probe
from d2lmgpu.schedules import plan

SEGMENT = 2**18  # elements


def segments(data, send):
    """The part of ``data`` that ``send`` moves, cut into views of at most `SEGMENT` elements.

    Defined in chapters/scaling/allreduce.
    """
    return data[send.start : send.stop].split(SEGMENT)


def ring_allreduce(data):
    """Replace ``data`` (one dimension, contiguous) by its sum over the ranks, in place.

    `schedules.ring`, each message cut into segments: one is added while the next one travels. All
    ranks end with the same bits. Raises ValueError for data of another kind.
    Defined in chapters/scaling/allreduce.
    """
    if data.ndim != 1 or not data.is_contiguous():
        raise ValueError(f"data has shape {tuple(data.shape)}: give one contiguous dimension.")
    rank, k = dist.get_rank(), dist.get_world_size()
    buffer = torch.empty(-(-len(data) // k), dtype=data.dtype, device=data.device)
    for sends in plan("ring", k, len(data)).rounds:
        transfers, additions = [], []
        for send in sends:
            parts = segments(data, send)
            if send.source == rank:
                transfers.append([dist.P2POp(dist.isend, part, send.target) for part in parts])
            if send.target == rank:
                room = buffer[: len(send)].split(SEGMENT) if send.add else parts
                transfers.append([dist.P2POp(dist.irecv, part, send.source) for part in room])
                additions = list(zip(parts, room)) if send.add else []
        started = [
            dist.batch_isend_irecv([transfer for transfer in both if transfer])
            for both in zip_longest(*transfers)
        ]
        for works, addition in zip_longest(started, additions):
            for work in works:
                work.wait()
            if addition:
                part, addend = addition
                part += addend


def probe():
    """The times of `calibration.in_threads`, measured by one rank; all ranks take part.

    With one device at work the others wait at a barrier.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    probe, found = Probe(d2l, [d2l.try_gpu(rank)]), {}
    alone = probe.compute if rank == 0 else lambda k, n: None

    def add(what, fn, *args):
        dist.barrier()
        found.setdefault(what, []).append(probe.timed(fn, *args))

    for _ in range(REPEATS + 1):
        for n in probe.sizes:
            add(("compute", 1, n), alone, 1, n)
            if world_size > 1:
                add(("compute", world_size, n), probe.compute, 1, n)
        for size, (array,) in probe.messages.items() if world_size > 1 else ():
            add(("exchange", world_size, size), dist.all_reduce, array)
    return {what: seconds[1:] for what, seconds in found.items()}
