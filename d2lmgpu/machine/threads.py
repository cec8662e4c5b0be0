"""One function on every device, at once."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait

from d2lmgpu.machine.devices import DeviceError, num_cores


class DeviceThreads:
    """A thread for each CPU core and GPU; ``setup()`` runs once in each before its first work.

    On a CPU, PyTorch computes in the thread that calls it, and what one thread queues in MXNet is
    computed one after the other. So devices overlap only if each has a thread of its own. With
    more devices than cores the shards queue up: that is what makes those devices simulated. The
    threads for the ``num_gpus()`` are for lists that mix: no GPU waits in that queue.
    """

    def __init__(self, setup, num_gpus):
        self.setup, self.num_gpus = setup, num_gpus
        self.forget()
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Have no threads yet: a fork takes none along."""
        self.pool, self.local = None, threading.local()

    def start(self) -> None:
        """Make the present thread one of a device."""
        self.local.is_device = True
        self.setup()

    def run(self, fn, *per_device_args) -> list:
        """``[fn(*args of device 0), fn(*args of device 1), …]``, the calls overlapping.

        DeviceError for several calls in the thread of a device: it would wait for itself.
        """
        calls = list(zip(*per_device_args, strict=True))
        if len(calls) == 1:
            return [fn(*calls[0])]
        if getattr(self.local, "is_device", False):
            raise DeviceError(
                f"What runs on a device asks for {len(calls)} devices at once, but each has one "
                "thread: call parallel for all of them, or for one, and loop over the rest."
            )
        if self.pool is None:
            number = num_cores() + self.num_gpus()
            self.pool = ThreadPoolExecutor(number, "device", initializer=self.start)
        futures = [self.pool.submit(fn, *call) for call in calls]
        wait(futures)  # all of them, also if one raised: no shard is left running
        return [future.result() for future in futures]
