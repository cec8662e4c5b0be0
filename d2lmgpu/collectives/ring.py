"""What the worker processes of ``launch`` do together, over torch.distributed."""

from itertools import zip_longest

import torch
import torch.distributed as dist

from d2lmgpu.collectives.schedules import plan

SEGMENT = 2**18  # elements


def segments(data, send) -> tuple:
    """The part of ``data`` that ``send`` moves, cut into views of at most ``SEGMENT`` elements.

    Defined in chapters/scaling/allreduce.

    Parameters
    ----------
    data : Tensor, (n,)
    send : Send

    Returns
    -------
    tuple of Tensor
    """
    return data[send.start : send.stop].split(SEGMENT)


def ring_allreduce(data) -> None:
    """Replace ``data`` by its sum over the ranks, in place: runs in the workers of ``launch``.

    The plan is ``schedules.ring``, each message cut into segments: one is added while the next one
    travels. All ranks end with the same bits. Defined in chapters/scaling/allreduce.

    Parameters
    ----------
    data : Tensor, (n,)
        Contiguous; with gloo on the CPU.

    Raises
    ------
    ValueError
        For data of another kind or place.
    """
    if data.ndim != 1 or not data.is_contiguous():
        raise ValueError(f"data has shape {tuple(data.shape)}: give one contiguous dimension.")
    if data.device.type != "cpu" and dist.get_backend() == "gloo":
        raise ValueError("gloo sends from the CPU's memory only: give data.cpu().")
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
