"""How long a data-parallel step should take, before it is run.

A step is: load the batch; then the host issues operations while the devices compute; then the
gradients are exchanged, as far as that was not hidden behind the backward pass. A host that does
not wait for the devices after every step loads while they compute, too. All results are modelled,
never measured. Times are seconds, sizes are bytes.
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from d2lmgpu.costmodel import CostError, need
from d2lmgpu.costmodel.presets import PRESETS as PRESETS
from d2lmgpu.costmodel.presets import Link, Machine
from d2lmgpu.machine.checks import is_whole

# algorithm -> (rounds, bytes through the busiest port per byte of gradient), for k >= 2 devices
COST = {
    "naive": lambda k: (2, 2 * (k - 1)),
    "host": lambda k: (2, 2 * k),
    "sharded": lambda k: (2, 2 * (k - 1) / k),
    "tree": lambda k: (2 * math.ceil(math.log2(k)), 2 * math.ceil(math.log2(k))),
    "ring": lambda k: (2 * (k - 1), 2 * (k - 1) / k),
}
GRADIENT_BITS = (16, 32)  # of a number as it is sent; mixed precision with DDP sends 32
MOST_SAMPLES = 2 * 10**7  # of `wait_samples`: 160 MB
MOST_DEVICES = 10_000  # of `best_num_gpus`: a tenth of a second


def exchange_seconds(algorithm: str, k: int, num_bytes: float, link: Link) -> float:
    """Seconds of an allreduce over k devices whose links are all alike.

    A round takes as long as its busiest port, see ``Schedule.busiest_port``: here as a formula, for
    any large k.

    Parameters
    ----------
    algorithm : str
        "naive", "host", "sharded", "tree" or "ring".
    k : int
        Devices, from 1 up.
    num_bytes : float
        Of a device's gradients.
    link : Link

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CostError
        For an unknown algorithm, a k below 1 and bytes below 0.
    """
    need.choice("algorithm", algorithm, COST)
    need.whole("k", k)
    need.real("num_bytes", num_bytes)
    need.kind("link", link, Link)
    if k == 1 or num_bytes == 0:
        return 0.0
    rounds, share = COST[algorithm](int(k))
    return rounds * link.latency + share * num_bytes / link.bandwidth


def machine_seconds(machine: Machine, k: int, num_bytes: float, algorithm: str = "ring") -> float:
    """Seconds of an allreduce over k devices that fill as few machines as possible.

    Within a machine by ``algorithm``. Over several: sharded inside each, a ring between them for
    each shard at once, so that a machine's network carries 2(m-1)/m of the gradient.

    Parameters
    ----------
    machine : Machine
        What each machine is.
    k : int
        Devices, from 1 up.
    num_bytes : float
        Of a device's gradients.
    algorithm : str
        One that ``exchange_seconds`` knows.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CostError
        For an unknown algorithm, a k below 1 and bytes below 0.
    """
    need.choice("algorithm", algorithm, COST)
    need.kind("machine", machine, Machine)
    need.whole("k", k)
    inside = min(k, machine.devices)
    link = machine.link_among(inside)
    if k <= machine.devices:
        return exchange_seconds(algorithm, k, num_bytes, link)
    between = exchange_seconds("ring", math.ceil(k / inside), num_bytes, machine.network)
    return exchange_seconds("sharded", inside, num_bytes, link) + between


def flat_ring_seconds(machine: Machine, k: int, num_bytes: float) -> float:
    """Seconds of one ring through all k devices of as few machines as possible, as NCCL counts.

    A part goes 2(k-1) hops; on 2(m-1) of them, with m machines, it pays the network's latency, on
    the others that of the machine's link. All parts move at the rate of the slowest link.

    Parameters
    ----------
    machine : Machine
        What each machine is.
    k : int
        Devices, from 1 up.
    num_bytes : float
        Of a device's gradients.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CostError
        For k below 1 and for bytes below 0.
    """
    need.kind("machine", machine, Machine)
    need.whole("k", k)
    need.real("num_bytes", num_bytes)
    if k <= machine.devices:
        return machine_seconds(machine, k, num_bytes)
    link = machine.link_among(machine.devices)
    between = 2 * (math.ceil(k / machine.devices) - 1)
    latency = (2 * (k - 1) - between) * link.latency + between * machine.network.latency
    slowest = min(link.bandwidth, machine.network.bandwidth)
    return latency + 2 * (k - 1) / k * num_bytes / slowest


def exposed_seconds(exchange: float, backward: float, num_buckets: int, overlap=True) -> float:
    """What remains of the exchange when the backward pass is over.

    The gradients fill equal buckets, evenly over the backward pass. A full bucket is sent as soon
    as the one before it is through. So either the network is never idle from the first bucket on,
    or nothing but the last bucket remains.

    Parameters
    ----------
    exchange : float
        Seconds of the whole exchange.
    backward : float
        Seconds of the backward pass.
    num_buckets : int
    overlap : bool
        Whether sending goes on while the backward pass runs.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CostError
        For a time below 0 and ``num_buckets`` below 1.
    """
    need.real("exchange", exchange)
    need.real("backward", backward)
    need.whole("num_buckets", num_buckets)
    need.kind("overlap", overlap, bool)
    if not overlap:
        return exchange
    return max(exchange / num_buckets, exchange - backward * (num_buckets - 1) / num_buckets)


def wait_seconds(k: int, mean_delay: float) -> float:
    """Expected wait of a step for the slowest of k devices.

    Each device is late by an exponentially distributed time. The expected largest of k is
    mean_delay·(1 + 1/2 + ... + 1/k): it grows with log k, without limit.

    Parameters
    ----------
    k : int
        Devices, from 1 up.
    mean_delay : float
        Of a device, in seconds.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CostError
        For a k below 1 and a delay below 0.
    """
    need.whole("k", k)
    need.real("mean_delay", mean_delay)
    if k <= 100:
        return mean_delay * math.fsum(1 / i for i in range(1, k + 1))
    # Euler and Maclaurin's expansion: from here on right to the last digits of a float
    x = float(k)
    harmonic = math.log(x) + np.euler_gamma + 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)
    return mean_delay * harmonic


def wait_samples(k: int, mean_delay: float, num_steps: int, seed: int = 0) -> np.ndarray:
    """The waits of simulated steps, see ``wait_seconds``.

    Parameters
    ----------
    k : int
        Devices, from 1 up.
    mean_delay : float
        Of a device, in seconds.
    num_steps : int
    seed : int
        Of the draws.

    Returns
    -------
    numpy.ndarray, (num_steps,)
        Seconds.

    Raises
    ------
    CostError
        For more than 20 million draws, a number below 1 and a delay or a seed below 0.
    """
    need.whole("k", k)
    need.real("mean_delay", mean_delay)
    need.whole("num_steps", num_steps)
    need.whole("seed", seed, least=0)
    if int(num_steps) * int(k) > MOST_SAMPLES:
        raise CostError(f"{num_steps} steps of {k} devices are more than {MOST_SAMPLES:,} draws.")
    delays = np.random.default_rng(seed).standard_exponential((num_steps, k))
    return float(mean_delay) * delays.max(axis=1)


@dataclass(frozen=True)
class Work:
    """What one training step has to do: bytes, and seconds of a device or of the host.

    Parameters
    ----------
    gradient_bytes : float
        Of all gradients.
    seconds_per_example : float
        Of a device.
    load_seconds : float
        Of the host, to load an example.
    issue_seconds : float
        Of the host, to launch a device's operations of one step.
    exchange_issue_seconds : float
        The same for the exchange, for each further device.
    one_process : bool
        Whether it drives all devices: its times add up. Else each has a process, and a loader.
    waits : bool
        Whether the host waits for the devices after every step: it loads while they are idle.
    mean_delay : float
        Seconds that a device is late on average, see ``wait_seconds``.
    algorithm : str
        Of the exchange: one that ``exchange_seconds`` knows.
    backward_share : float
        Of the device's time, in which gradients become ready: from 0 to 1.
    bucket_bytes : float
        Of gradients that are sent at once, from 1 up; DDP's default is 25 MiB.
    seconds_per_step : float
        Of a device, whatever the batch.
    messages : int
        In which the gradients are exchanged at least; a bucket is one, too.

    Raises
    ------
    CostError
        For what no step can have.
    """

    gradient_bytes: float
    seconds_per_example: float
    load_seconds: float = 0.0
    issue_seconds: float = 0.0
    exchange_issue_seconds: float = 0.0
    one_process: bool = False
    waits: bool = True
    mean_delay: float = 0.0
    algorithm: str = "ring"
    backward_share: float = 2 / 3
    bucket_bytes: float = 25 * 2**20
    seconds_per_step: float = 0.0
    messages: int = 1

    def __post_init__(self):
        for field in fields(self):
            if field.type is float:
                need.real(field.name, getattr(self, field.name))
        need.real("bucket_bytes", self.bucket_bytes, least=1)
        need(self.backward_share <= 1, "backward_share", self.backward_share, "at most 1")
        need.whole("messages", self.messages)
        need.kind("one_process", self.one_process, bool)
        need.kind("waits", self.waits, bool)
        need.choice("algorithm", self.algorithm, COST)

    @classmethod
    def of_parameters(cls, parameters, seconds_per_example, gradient_bits=32, **terms) -> "Work":
        """Work of a network with so many parameters, each of which has a gradient.

        Parameters
        ----------
        parameters : float
            How many.
        seconds_per_example : float
            Of a device.
        gradient_bits : int
            16 or 32, of a gradient when it is sent. What is computed in 16 bits may be sent in 32,
            as DDP does with autocast, whose parameters stay in float32.
        **terms : float
            Other fields.

        Returns
        -------
        Work

        Raises
        ------
        CostError
            For other bits, and for what no step can have.
        """
        need.real("parameters", parameters)
        right = is_whole(gradient_bits) and gradient_bits in GRADIENT_BITS
        need(right, "gradient_bits", gradient_bits, "16 or 32")
        return cls(parameters * gradient_bits / 8, seconds_per_example, **terms)


@dataclass(frozen=True)
class Step:
    """Modelled times of one step, in seconds, on its slowest device.

    Attributes
    ----------
    k : int
        Devices.
    batch_size : int
        Global batch.
    load, issue : float
        Of the host.
    compute, wait, exchange : float
        Of the devices.
    exposed : float
        What of the exchange is not hidden behind the backward pass.
    waits : bool
        Whether the host waits for the devices after the step.
    """

    k: int
    batch_size: int
    load: float
    issue: float
    compute: float
    wait: float
    exchange: float
    exposed: float
    waits: bool = True

    @property
    def seconds(self) -> float:
        """The whole step, in seconds.

        The host issues while the devices work; the longer of the two counts. Loading comes before
        both where the host waits, else it is the host's part.
        """
        devices = self.compute + self.wait + self.exposed
        if self.waits:
            return self.load + max(self.issue, devices)
        return max(self.load + self.issue, devices)

    @property
    def samples_per_second(self) -> float:
        """Examples of the global batch a second."""
        return self.batch_size / self.seconds

    @property
    def communication_share(self) -> float:
        """Part of the step in which devices do nothing but exchange gradients."""
        return self.exposed / self.seconds


def step(work: Work, machine: Machine, k: int, batch_size: int) -> Step:
    """The modelled step of a global batch on k devices, as evenly split as possible.

    Parameters
    ----------
    work : Work
    machine : Machine
    k : int
        Devices, from 1 up.
    batch_size : int
        Global batch, in examples.

    Returns
    -------
    Step

    Raises
    ------
    CostError
        For work that takes no time, and for a k or ``batch_size`` below 1.
    """
    need.kind("work", work, Work)
    need.kind("machine", machine, Machine)
    need.whole("k", k)
    need.whole("batch_size", batch_size)
    largest = -(-batch_size // k)
    slow_fixed, slow_example = machine.slowed(k)
    compute = work.seconds_per_step * slow_fixed + work.seconds_per_example * slow_example * largest
    num_buckets = max(1, math.ceil(work.gradient_bytes / work.bucket_bytes))
    messages = max(work.messages, num_buckets)  # each pays its latencies
    message = work.gradient_bytes / messages
    exchange = messages * machine_seconds(machine, k, message, work.algorithm)
    loaded, driven = (batch_size, k) if work.one_process else (largest, 1)
    modelled = Step(
        k,
        batch_size,
        load=work.load_seconds * loaded,
        issue=work.issue_seconds * driven + work.exchange_issue_seconds * (k - 1),
        compute=compute,
        wait=wait_seconds(k, work.mean_delay),
        exchange=exchange,
        exposed=exposed_seconds(
            exchange, work.backward_share * compute, num_buckets, machine.overlap
        ),
        waits=work.waits,
    )
    if modelled.seconds == 0:
        raise CostError(f"{work!r} takes no time: a step of it has no speed.")
    return modelled


def best_num_gpus(work: Work, machine: Machine, batch_size: int, at_most: int) -> int:
    """The number of devices with the shortest step (the smallest of equals). Every number is tried.

    Parameters
    ----------
    work : Work
    machine : Machine
    batch_size : int
        Global batch, in examples.
    at_most : int
        Devices, from 1 to 10,000.

    Returns
    -------
    int

    Raises
    ------
    CostError
        For another ``at_most``, and what ``step`` refuses.
    """
    need.whole("at_most", at_most)
    need(at_most <= MOST_DEVICES, "at_most", at_most, f"{MOST_DEVICES:,} or less")
    return min(range(1, at_most + 1), key=lambda k: step(work, machine, k, batch_size).seconds)
