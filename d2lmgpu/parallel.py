"""One function on every device, at once."""

from concurrent.futures import ThreadPoolExecutor, wait

from d2lmgpu.devices import num_cores


class DeviceThreads:
    """A thread for each CPU core; ``setup`` runs once in each before its first work.

    On a CPU, PyTorch computes in the thread that calls it, and what one thread queues in MXNet is
    computed one after the other. So devices overlap only if each has a thread of its own. With
    more devices than cores the shards queue up: that is what makes those devices simulated.
    """

    def __init__(self, setup):
        self.setup, self.pool = setup, None

    def run(self, fn, *per_device_args):
        """``[fn(*args of device 0), fn(*args of device 1), …]``, the calls overlapping."""
        calls = list(zip(*per_device_args, strict=True))
        if len(calls) == 1:
            return [fn(*calls[0])]
        if self.pool is None:
            self.pool = ThreadPoolExecutor(num_cores(), "device", initializer=self.setup)
        futures = [self.pool.submit(fn, *call) for call in calls]
        wait(futures)  # all of them, also if one raised: no shard is left running
        return [future.result() for future in futures]
