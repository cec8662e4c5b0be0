"""What the worker processes of ``launch`` do together, over torch.distributed."""

import torch.distributed as dist

from d2lmgpu import torch as d2l
from d2lmgpu.calibration import REPEATS, Probe


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
