"""What the devices of this machine can do: compute, latency and bandwidth, measured in seconds.

    d2lmgpu calibrate torch            devices as threads of one process
    d2lmgpu calibrate torch processes  a process for each device, as in DDP

What is timed is the `probe`. No training step is run.
"""

import importlib
import os
import time
from dataclasses import dataclass

import numpy as np

from d2lmgpu.costmodel import need, probe
from d2lmgpu.costmodel.least_squares import fit_line
from d2lmgpu.costmodel.model import COST, Machine
from d2lmgpu.costmodel.presets import NETWORKS, Link, Source
from d2lmgpu.launch import launch
from d2lmgpu.machine.devices import VARIABLE, available

KINDS = ("torch with threads", "torch with processes", "mxnet with threads")


@dataclass(frozen=True)
class Calibration:
    """What was measured of one machine's devices.

    Attributes
    ----------
    framework : str
    workers : str
        That drive the devices: 'threads' or 'processes'.
    algorithm : str
        Of the exchange that was timed, see ``exchange_seconds``.
    devices : int
    flops : float
        Of a device in the probe, forward and backward, operations a second.
    latency : float or None
        Seconds a message, in an allreduce over all devices; None for one device.
    bandwidth : float or None
        Bytes a second and direction, of the same.
    slowdown : tuple of tuple
        As ``Machine`` has it.
    spread : float
        The middle half of one device's times over their median.
    fit_error : float
        The largest relative distance of an allreduce from latency and bandwidth.
    seconds : float
        That calibrating took.
    """

    framework: str
    workers: str
    algorithm: str
    devices: int
    flops: float
    latency: float | None
    bandwidth: float | None
    slowdown: tuple[tuple[int, float, float], ...]
    spread: float
    fit_error: float
    seconds: float

    @property
    def machine(self) -> Machine:
        """This machine for the cost model; one device alone has a link that nothing goes over."""
        link = Link(0.0, 1.0) if self.latency is None else Link(self.latency, self.bandwidth)
        return Machine(
            "this machine",
            self.devices,
            link,
            NETWORKS["10 Gb Ethernet"],
            self.flops,
            self.flops,
            (Source("all", "measured", "see `calibrate`", f"{self.framework}, {self.workers}"),),
            overlap=self.workers == "processes",
            slowdown=tuple(map(tuple, self.slowdown)),
        )


def calibrate(framework: str, workers: str = "threads") -> Calibration:
    """Measure this machine's devices. Takes less than ten seconds.

    Parameters
    ----------
    framework : str
        'torch' or 'mxnet', which is imported.
    workers : str
        'threads' as in the chapters from scratch and with Gluon, 'processes' as with DDP (PyTorch
        only).

    Returns
    -------
    Calibration

    Raises
    ------
    CostError
        For another pair of these, and where GPUs and cores are both devices.
    """
    need.choice("What to calibrate", f"{framework} with {workers}", KINDS)
    start = time.perf_counter()
    d2l = importlib.import_module(f"d2lmgpu.{framework}")
    kind, _ = available(d2l.num_gpus())
    need(kind != "mixed", VARIABLE, os.environ.get(VARIABLE), "gpu or cpu: the model's are equal")
    devices = real_devices(d2l)
    if workers == "threads":
        algorithm, times = "naive", probe.in_threads(d2l, devices)
    else:
        ranks = launch(probe.in_processes, num_processes=len(devices))
        algorithm, times = "ring", slowest(ranks)
    return summary(framework, workers, algorithm, times, time.perf_counter() - start)


def real_devices(d2l) -> list:
    """The devices that can work at once: none of them is simulated."""
    all_devices = d2l.try_all_gpus()
    return [d for k, d in enumerate(all_devices, 1) if d2l.sharing(k) != "simulated"]


def slowest(ranks) -> dict:
    """What the ranks measured, as one: for what they did together the slowest rank's times."""
    return {what: np.max([rank[what] for rank in ranks], axis=0) for what in ranks[0]}


def summary(framework, workers, algorithm, times, seconds) -> Calibration:
    """The Calibration of what `probe.in_threads` measured."""
    times = {key: np.array(values) for key, values in times.items()}
    computed = [key[1:] for key in times if key[0] == "compute"]
    ks, (few, many) = (sorted(set(numbers)) for numbers in zip(*computed))
    most = ks[-1]
    alone, alone_many = times["compute", 1, few], times["compute", 1, many]
    slowdown = []
    for k in ks:
        small, large = times["compute", k, few], times["compute", k, many]
        ratios = small / alone, (large - small) / (alone_many - alone)
        # company makes no device faster: what is below 1 is noise
        slowdown.append((k, *(max(1.0, float(np.median(ratio))) for ratio in ratios)))
    latency, bandwidth, fit_error = None, None, 0.0
    if most > 1:
        # the least of each: they are so short that whatever interrupts them only adds
        least = {size: min(t) for (what, _, size), t in times.items() if what == "exchange"}
        a, b, fit_error = fit_line(list(least), list(least.values()))
        rounds, share = COST[algorithm](most)
        latency, bandwidth = a / rounds, share / b
    quartiles = np.percentile(alone_many, [25, 50, 75])
    flops = 3 * probe.FLOP * many / float(quartiles[1])
    spread = float((quartiles[2] - quartiles[0]) / quartiles[1])
    return Calibration(
        framework,
        workers,
        algorithm,
        most,
        flops,
        latency,
        bandwidth,
        tuple(slowdown),
        spread,
        fit_error,
        seconds,
    )
