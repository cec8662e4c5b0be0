"""Our allreduces on 64 MB: ``python -m benchmarks.allreduce`` on a machine at rest.

Between processes, the ring of `d2lmgpu.collectives.ring` against gloo's own. In one process, the
ring of `d2lmgpu.collectives.execution` against copying as many bytes as it sends. Ratios of times,
by turns.
"""

import sys
import time
from statistics import median

import numpy as np

from benchmarks.measure import verdict
from d2lmgpu.collectives.execution import allreduce
from d2lmgpu.collectives.schedules import plan
from d2lmgpu.launch import launch

ELEMENTS, REPEATS = 2**24, 7


def between_processes() -> list[tuple[float, float]]:
    """[(ours, gloo's)] in seconds; runs inside ``launch``."""
    import torch
    import torch.distributed as dist

    from d2lmgpu.collectives.ring import ring_allreduce

    def timed(allreduce):
        data = torch.ones(ELEMENTS)
        dist.barrier()
        start = time.perf_counter()
        allreduce(data)
        dist.barrier()
        return time.perf_counter() - start

    return [(timed(ring_allreduce), timed(dist.all_reduce)) for _ in range(REPEATS + 1)][1:]


def in_one_process(k) -> list[tuple[float, float]]:
    """[(ring over k arrays, copying the bytes that it sends)] in seconds."""
    arrays = [np.ones(ELEMENTS, "float32") for _ in range(k)]
    schedule, (source, target) = plan("ring", k, ELEMENTS), np.ones((2, ELEMENTS), "float32")
    elements = sum(schedule.bytes_sent(1))

    def timed(fn):
        start = time.perf_counter()
        fn()
        return time.perf_counter() - start

    def copy():
        for left in range(elements, 0, -ELEMENTS):
            np.copyto(target[:left], source[:left])

    return [(timed(lambda: allreduce(arrays, "ring")), timed(copy)) for _ in range(REPEATS)]


def line(name, pairs, limit) -> bool:
    """Print one ratio with its spread; whether it is within its limit."""
    ours, theirs = (1000 * median(side) for side in zip(*pairs, strict=True))
    ratios = [ours / theirs for ours, theirs in pairs]
    return verdict(f"{name}: {ours:.0f} and {theirs:.0f} ms, ratio", ratios, limit)


def main() -> int:
    """Measure everything; returns the number of results beyond their limits."""
    pairs = launch(between_processes, num_processes=2)[0]
    good = [line("ring between 2 processes, and gloo's", pairs, 2.0)]
    for k in (2, 4, 8):
        pairs = in_one_process(k)
        good.append(line(f"ring over {k} arrays, and copying its bytes", pairs, 1.3))
    return good.count(False)


if __name__ == "__main__":
    sys.exit(main())
