"""What is timed to calibrate a machine: a small network of LeNet's kind, and sums of its pixels.

It runs on one device and on several at once: devices share what they share (memory, one Python),
and that slows each of them down.
"""

import time
from functools import partial

import numpy as np

from d2lmgpu.machine.core_queue import Queue
from d2lmgpu.process.events import report

SHAPES = [(16, 1, 3, 3), (16,), (32, 16, 5, 5), (32,), (512, 64), (64,), (64, 10), (10,)]
# of a forward pass, an example: the outputs of a layer times what each of them costs
FLOP = 2 * (26 * 26 * 16 * 9 + 9 * 9 * 32 * 400 + 512 * 64 + 64 * 10)
REPEATS, IMAGES = 9, 4096
CALIBRATING = 0.5  # of the time that a forecast is measured in, see course/forecasting.py


class Probe:
    """The probe's data and weights on ``devices``."""

    def __init__(self, d2l, devices):
        images = min(IMAGES, d2l.profile().num_train)
        X, y = next(iter(d2l.load_data_fashion_mnist(images)[0]))
        numbers = X.reshape(-1)  # the weights are pixels: any numbers will do
        weights = [numbers[: np.prod(s)].reshape(s) * 0.05 for s in SHAPES]
        self.params = [d2l.get_params(weights, device) for device in devices]
        most = 64 if d2l.num_gpus() == 0 else 1024
        self.sizes = (1, min(most, images // len(devices)))
        self.shards = {
            n: d2l.split_batch(X[: n * len(devices)], y[: n * len(devices)], devices)
            for n in self.sizes
        }
        self.messages = {
            4 * n: [d2l.get_params([numbers[:n]], device)[0].grad for device in devices]
            for n in (1, len(numbers) // 64, len(numbers) // 16, len(numbers) // 4)
        }
        self.d2l = d2l

    def compute(self, k, n) -> None:
        """Forward and backward on the first k devices at once, n images each."""
        X, y = self.shards[n]
        waits = self.d2l.parallel(self.queue, X[:k], y[:k], self.params[:k])
        self.queued += max(waits)

    def queue(self, *shard) -> float:
        """Forward and backward; the seconds in which other programs had this device's core."""
        queue = Queue()
        self.d2l.forward_backward(*shard)
        return queue.seconds()

    def seconds(self, jobs, begin=lambda: None) -> dict:
        """Seconds of each of ``jobs``, `REPEATS` times in turn; ``begin`` waits for other ranks.

        Left out is what devices wait for a core: other programs' time, and no device's slowness.
        """
        times = {what: [] for what in jobs}
        for number in range(REPEATS + 1):
            done = CALIBRATING * number / (REPEATS + 1)
            report("measuring", done=done, message="what devices compute and exchange")
            for what, job in jobs.items():
                begin()
                self.d2l.synchronize()
                start, self.queued = time.perf_counter(), 0.0
                job()
                self.d2l.synchronize()
                times[what].append(time.perf_counter() - start - self.queued)
        return {what: seconds[1:] for what, seconds in times.items()}  # the first ones warm up


def in_threads(d2l, devices) -> dict:
    """Seconds by what was timed: ('compute', k, n) and ('exchange', k, bytes), lists as long."""
    probe, most = Probe(d2l, devices), len(devices)
    counts = sorted({most, *(2**i for i in range(most.bit_length()) if 2**i < most)})
    jobs = {("compute", k, n): partial(probe.compute, k, n) for n in probe.sizes for k in counts}
    if most > 1:
        for size, arrays in probe.messages.items():
            jobs["exchange", most, size] = partial(d2l.allreduce, arrays)
    return probe.seconds(jobs)


def in_processes() -> dict:
    """The same in a process for each device, as in DDP: runs in the workers of ``launch``.

    With one device at work the others wait at a barrier.
    """
    import torch.distributed as dist

    from d2lmgpu import torch as d2l

    rank, most = dist.get_rank(), dist.get_world_size()
    probe, jobs = Probe(d2l, [d2l.try_gpu(rank)]), {}
    for n in probe.sizes:
        together = partial(probe.compute, 1, n)
        jobs["compute", most, n] = together
        jobs["compute", 1, n] = together if rank == 0 else lambda: None
    if most > 1:
        for size, (array,) in probe.messages.items():
            jobs["exchange", most, size] = partial(dist.all_reduce, array)
    return probe.seconds(jobs, begin=dist.barrier)
