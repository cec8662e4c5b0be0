"""What DistributedDataParallel measures of its own steps, told as parts of them (see `lanes`).

It notes when its forward pass began, when the last gradient was computed, and when the last bucket
was back. So its hooks stay free, and nothing is waited for that it would not wait for. What its
exchange hides behind the backward pass is in the computing; the rest of the exchange cannot be told
from waiting for a process that is later.
"""

import contextlib
import time
import weakref
from collections.abc import Iterator
from functools import wraps

from torch.nn.parallel import DistributedDataParallel

from d2lmgpu.process.lanes import LISTENER, Steps
from d2lmgpu.process.step_parts import COMPUTING, MEETING

# Nanoseconds of time.time(), in its logging data.
MOMENTS = ("forward_compute_time_start", "backward_compute_time_end", "backward_comm_time_end")


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """In here the steps of this process are timed, with what its newest DDP network says of them.

    The reader's function makes that network, so the class says when.
    """
    newest, make = Newest(), DistributedDataParallel.__init__

    @wraps(make)
    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        newest.take(self)

    DistributedDataParallel.__init__ = made
    try:
        with LISTENER.listen(Steps(parts=newest.parts)):
            yield
    finally:
        DistributedDataParallel.__init__ = make


class Newest:
    """The newest DDP network of this process, for as long as it is used."""

    def __init__(self):
        self._network = None  # a weak reference

    def take(self, net) -> None:
        """``net`` is the newest now."""
        net._set_ddp_runtime_logging_sample_rate(1)  # each step: on CPUs it only reads a clock
        self._network = weakref.ref(net)

    def parts(self, since) -> list[tuple[str, float, float]]:
        """[(what, start, end)] of the step that began at ``since``, all by time.monotonic().

        Empty without a network, and for a step that was not a forward and a backward pass with its
        exchange: gradients may be collected over several batches.
        """
        net = self._network and self._network()
        if net is None:
            return []
        net.logger.set_runtime_stats_and_log()  # else it would be the step before
        moments = net._get_ddp_logging_data()
        shift = time.monotonic() - time.time()
        begun, computed, exchanged = (moments.get(name, 0) / 1e9 + shift for name in MOMENTS)
        if not since <= begun <= computed <= exchanged:
            return []
        return [(COMPUTING, begun, computed), (MEETING, computed, exchanged)]
