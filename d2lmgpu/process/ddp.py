"""What DistributedDataParallel measures of its own steps, told as parts of them (see `lanes`).

It notes when its forward pass began, when the last gradient was computed, and when the last bucket
was back. So its hooks stay free, and nothing is waited for that it would not wait for. What its
exchange hides behind the backward pass is in the computing; the rest of the exchange cannot be told
from waiting for a process that is later.
"""

import time
import weakref
from functools import wraps

from torch.nn.parallel import DistributedDataParallel

from d2lmgpu.process import lanes
from d2lmgpu.process.step_parts import COMPUTING, MEETING

# Nanoseconds of time.time(), in its logging data.
MOMENTS = ("forward_compute_time_start", "backward_compute_time_end", "backward_comm_time_end")
_newest = None


def listen():
    """From now on time the steps of this process, with what its newest DDP network says of them."""
    make = DistributedDataParallel.__init__

    @wraps(make)
    def made(self, *args, **kwargs):
        global _newest
        make(self, *args, **kwargs)
        self._set_ddp_runtime_logging_sample_rate(1)  # each step: on CPUs it only reads a clock
        _newest = weakref.ref(self)

    DistributedDataParallel.__init__ = made
    lanes.listen(parts=parts)


def parts(since):
    """[(what, start, end)] of the step that began at ``since``, all by time.monotonic().

    Empty without a network, and for a step that was not a forward and a backward pass with its
    exchange: gradients may be collected over several batches.
    """
    net = _newest and _newest()
    if net is None:
        return []
    net.logger.set_runtime_stats_and_log()  # else it would be the step before
    moments = net._get_ddp_logging_data()
    shift = time.monotonic() - time.time()
    begun, computed, exchanged = (moments.get(name, 0) / 1e9 + shift for name in MOMENTS)
    if not since <= begun <= computed <= exchanged:
        return []
    return [(COMPUTING, begun, computed), (MEETING, computed, exchanged)]
