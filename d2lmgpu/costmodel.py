"""How long a data-parallel step should take, before it is run.

A step is: load the batch; then the host issues operations while the devices compute; then the
gradients are exchanged, as far as that was not hidden behind the backward pass. All results are
modelled, never measured. Times are seconds, sizes are bytes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from d2lmgpu.collectives import shard_sizes
from d2lmgpu.devices import is_count
from d2lmgpu.machines import PRESETS, CostError, Link, Machine, check
from d2lmgpu.schedules import Schedule

__all__ = [
    "PRESETS", "CostError", "Link", "Machine", "Step", "Work", "best_num_gpus", "exchange_seconds",
    "exposed_seconds", "machine_seconds", "schedule_seconds", "step", "strong_scaling",
    "wait_samples", "wait_seconds", "weak_scaling",
]  # fmt: skip

# algorithm -> (rounds, bytes through the busiest port per byte of gradient), for k >= 2 devices
_COST = {
    "naive": lambda k: (2, 2 * (k - 1)),
    "host": lambda k: (2, 2 * k),
    "sharded": lambda k: (2, 2 * (k - 1) / k),
    "tree": lambda k: (2 * math.ceil(math.log2(k)), 2 * math.ceil(math.log2(k))),
    "ring": lambda k: (2 * (k - 1), 2 * (k - 1) / k),
}


def schedule_seconds(schedule: Schedule, link: Link, itemsize: int = 4) -> float:
    """Time of a schedule whose links are all alike: a round takes as long as its busiest port."""
    busiest = schedule.busiest_port(itemsize)
    return len(busiest) * link.latency + sum(busiest) / link.bandwidth


def exchange_seconds(algorithm: str, k: int, num_bytes: float, link: Link) -> float:
    """Allreduce of num_bytes over k devices: `schedule_seconds` as a formula, for any large k."""
    _check_devices(k)
    check("num_bytes", num_bytes, True, "bytes")
    _check_algorithm(algorithm)
    if k == 1 or num_bytes == 0:
        return 0.0
    rounds, share = _COST[algorithm](k)
    return rounds * link.latency + share * num_bytes / link.bandwidth


def machine_seconds(machine: Machine, k: int, num_bytes: float, algorithm: str = "ring") -> float:
    """Allreduce over k devices that fill as few machines as possible.

    Within a machine by `algorithm`. Over several: sharded inside each, a ring between them for each
    shard at once, so that a machine's network carries 2(m-1)/m of the gradient.
    """
    _check_devices(k)
    inside = min(k, machine.devices)
    link = machine.link
    if machine.shared:
        link = replace(link, bandwidth=link.bandwidth / inside)
    if k <= machine.devices:
        return exchange_seconds(algorithm, k, num_bytes, link)
    between = exchange_seconds("ring", math.ceil(k / inside), num_bytes, machine.network)
    return exchange_seconds("sharded", inside, num_bytes, link) + between


def exposed_seconds(exchange: float, backward: float, num_buckets: int, overlap=True) -> float:
    """What remains of the exchange when the backward pass is over.

    The gradients fill num_buckets equal buckets, evenly over the backward pass. A full bucket is
    sent as soon as the one before it is through. So one bucket's time always remains.
    """
    check("exchange", exchange, True, "seconds")
    check("backward", backward, True, "seconds")
    _check_whole("num_buckets", num_buckets)
    if not overlap:
        return exchange
    per_bucket = exchange / num_buckets
    sent = 0.0
    for bucket in range(1, num_buckets + 1):
        sent = max(sent, backward * bucket / num_buckets) + per_bucket
    return sent - backward


def wait_seconds(k: int, mean_delay: float) -> float:
    """Expected wait of a step for the slowest of k devices.

    Each device is late by an exponentially distributed time of the given mean. The expected largest
    of k is mean_delay·(1 + 1/2 + ... + 1/k): it grows with log k, without limit.
    """
    _check_devices(k)
    check("mean_delay", mean_delay, True, "seconds")
    return mean_delay * float(np.sum(1 / np.arange(1, k + 1)))


def wait_samples(k: int, mean_delay: float, num_steps: int, seed: int = 0) -> np.ndarray:
    """The waits of num_steps simulated steps, (num_steps,) in seconds: see `wait_seconds`."""
    _check_devices(k)
    check("mean_delay", mean_delay, True, "seconds")
    delays = np.random.default_rng(seed).exponential(mean_delay, (num_steps, k))
    return delays.max(axis=1)


@dataclass(frozen=True)
class Work:
    """What one training step has to do.

    num_bytes: of all gradients, exchanged in so many messages. example: device time per example;
    fixed: device time per step, whatever the batch. load: host time per example.
    issue: host time per device and step to launch its operations; exchange_issue: the same for the
    exchange, per further device. one_process: one Python process drives all devices, so these host
    times add up; otherwise each device has a process and a loader of its own. mean_delay: see
    `wait_seconds`. backward: share of the device time; bucket: bytes sent at once.
    """

    num_bytes: float
    example: float
    load: float = 0.0
    issue: float = 0.0
    exchange_issue: float = 0.0
    one_process: bool = False
    mean_delay: float = 0.0
    algorithm: str = "ring"
    backward: float = 2 / 3
    bucket: float = 25 * 2**20
    fixed: float = 0.0
    messages: int = 1

    def __post_init__(self):
        times = ("example", "fixed", "load", "issue", "exchange_issue", "mean_delay")
        for name in ("num_bytes", *times):
            check(name, getattr(self, name), True, "bytes or seconds")
        check("bucket", self.bucket, False, "bytes")
        check("messages", self.messages, False, "a step")
        _check_algorithm(self.algorithm)
        if not 0 <= self.backward <= 1:
            raise CostError(f"backward is {self.backward!r}; it must be a share from 0 to 1.")


@dataclass(frozen=True)
class Step:
    """Modelled times of one step, in seconds, on its slowest device."""

    k: int
    batch_size: int
    load: float
    issue: float
    compute: float
    wait: float
    exchange: float
    exposed: float

    @property
    def seconds(self) -> float:
        """The whole step: the host issues while the devices work; the longer of the two counts."""
        return self.load + max(self.issue, self.compute + self.wait + self.exposed)

    @property
    def samples_per_second(self) -> float:
        return self.batch_size / self.seconds

    @property
    def communication_share(self) -> float:
        """Part of the step in which devices do nothing but exchange gradients."""
        return self.exposed / self.seconds


def step(work: Work, machine: Machine, k: int, batch_size: int) -> Step:
    """The step of `batch_size` examples on k devices, as evenly split as possible."""
    _check_devices(k)
    _check_whole("batch_size", batch_size)
    largest = shard_sizes(batch_size, k)[0]
    slow_fixed, slow_example = machine.slowed(k)
    compute = work.fixed * slow_fixed + work.example * slow_example * largest
    message = work.num_bytes / work.messages
    exchange = work.messages * machine_seconds(machine, k, message, work.algorithm)
    num_buckets = max(1, math.ceil(work.num_bytes / work.bucket))
    exposed = exposed_seconds(exchange, work.backward * compute, num_buckets, machine.overlap)
    return Step(
        k, batch_size,
        load=work.load * (batch_size if work.one_process else largest),
        issue=work.issue * (k if work.one_process else 1) + work.exchange_issue * (k - 1),
        compute=compute,
        wait=wait_seconds(k, work.mean_delay),
        exchange=exchange,
        exposed=exposed,
    )  # fmt: skip


def strong_scaling(work: Work, machine: Machine, batch_size: int, ks) -> dict[int, Step]:
    """The same batch on more devices."""
    return {k: step(work, machine, k, batch_size) for k in ks}


def weak_scaling(work: Work, machine: Machine, per_device: int, ks) -> dict[int, Step]:
    """A batch that grows with the devices: per_device examples on each."""
    return {k: step(work, machine, k, per_device * k) for k in ks}


def best_num_gpus(work: Work, machine: Machine, batch_size: int, at_most: int) -> int:
    """The number of devices, from 1 to at_most, with the shortest step (the smallest of equals)."""
    _check_devices(at_most)
    steps = strong_scaling(work, machine, batch_size, range(1, at_most + 1))
    return min(steps, key=lambda k: steps[k].seconds)


def _check_devices(k) -> None:
    _check_whole("k, the number of devices,", k)


def _check_whole(name, value) -> None:
    if not is_count(value):
        raise CostError(f"{name} is {value!r}; it must be a whole number from 1 up.")


def _check_algorithm(algorithm) -> None:
    if algorithm not in _COST:
        raise CostError(f"No formula for {algorithm!r}; choose from {', '.join(_COST)}.")
