"""What the devices of this machine can do: compute, latency and bandwidth, measured in seconds.

    python -m d2lmgpu.calibration torch            devices as threads of one process
    python -m d2lmgpu.calibration torch processes  a process for each device, as in DDP

A small network of LeNet's kind is the probe, on one device and on several at once: devices share
what they share (memory, one Python), and that slows each of them down. No training step is run.
"""

import importlib
import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

from d2lmgpu.launch import launch
from d2lmgpu.machines import NETWORKS, CostError, Link, Machine

SHAPES = [(16, 1, 3, 3), (16,), (32, 16, 5, 5), (32,), (512, 64), (64,), (64, 10), (10,)]
# of a forward pass, an example: the outputs of a layer times what each of them costs
FLOP = 2 * (26 * 26 * 16 * 9 + 9 * 9 * 32 * 400 + 512 * 64 + 64 * 10)
REPEATS, IMAGES = 9, 4096


@dataclass(frozen=True)
class Calibration:
    """One machine's `devices` devices, driven by threads or processes (`how`).

    flops: a device's rate in the probe, forward and backward. latency (seconds) and bandwidth
    (bytes a second): of an allreduce over all of them, as the cost model counts `algorithm`; None
    where there is one device. slowdown: see Machine. spread: the middle half of one device's times
    over their median. misfit: the largest relative distance of a measured allreduce from the line
    of latency and bandwidth. seconds: what calibrating took.
    """

    framework: str
    how: str
    algorithm: str
    devices: int
    flops: float
    latency: float | None
    bandwidth: float | None
    slowdown: tuple[tuple[int, float, float], ...]
    spread: float
    misfit: float
    seconds: float

    @property
    def machine(self) -> Machine:
        """This machine for the cost model; one device alone has a link that nothing goes over."""
        link = Link(0.0, 1.0) if self.latency is None else Link(self.latency, self.bandwidth)
        return Machine(
            "this machine", self.devices, link,
            NETWORKS["10 Gb Ethernet"], self.flops, self.flops,
            f"calibrated with {self.framework}, {self.how}", overlap=self.how == "processes",
            slowdown=tuple(map(tuple, self.slowdown)),
        )  # fmt: skip


def affine(xs, seconds) -> tuple[float, float, float]:
    """(a, b, misfit) of seconds ≈ a + b·x: least squares of the relative error, a ≥ 0 and b > 0.

    misfit is the largest relative error. Raises CostError for fewer than two distinct xs, or for
    times that are not above 0.
    """
    xs, seconds = np.asarray(xs, float), np.asarray(seconds, float)
    if len(set(xs)) < 2 or not (np.isfinite(seconds).all() and (seconds > 0).all()):
        raise CostError(f"No line through x = {xs.tolist()} and seconds = {seconds.tolist()}.")
    terms = np.column_stack([np.ones_like(xs), xs]) / seconds[:, None]
    fits = []
    for used in ([0, 1], [1]):
        factors = np.zeros(2)
        factors[used] = np.linalg.lstsq(terms[:, used], np.ones(len(xs)), rcond=None)[0]
        if factors[0] >= 0 and factors[1] > 0:
            fits.append(factors)
    best = min(fits, key=lambda factors: np.sum((terms @ factors - 1) ** 2))
    return float(best[0]), float(best[1]), float(np.max(np.abs(terms @ best - 1)))


def calibrate(framework: str, how: str = "threads") -> Calibration:
    """Measure this machine's devices with ``framework`` ('torch' or 'mxnet'), which is imported.

    how: 'threads' as in the chapters from scratch and with Gluon, 'processes' as with DDP (PyTorch
    only). Takes less than ten seconds. Raises CostError for anything else.
    """
    if (framework, how) not in {("torch", "threads"), ("torch", "processes"), ("mxnet", "threads")}:
        raise CostError(
            f"Cannot calibrate {framework!r} with {how!r}: choose torch with threads or "
            "processes, or mxnet with threads."
        )
    start = time.perf_counter()
    d2l = importlib.import_module(f"d2lmgpu.{framework}")
    if how == "threads":
        algorithm, found = "naive", in_threads(d2l)
    else:
        from d2lmgpu.processes import probe

        algorithm = "ring"
        found = slowest(launch(probe, num_processes=len(real_devices(d2l))))
    return summary(framework, how, algorithm, found, time.perf_counter() - start)


def real_devices(d2l) -> list:
    """The devices that can work at once: none of them is simulated."""
    found = d2l.try_all_gpus()
    return [d for k, d in enumerate(found, 1) if d2l.overlap(k) != "simulated"]


class Probe:
    """The probe's data and weights on ``devices``; `compute` and `exchange` are timed outside."""

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

    def compute(self, k, n):
        """Forward and backward on the first k devices at once, n images each."""
        X, y = self.shards[n]
        self.d2l.parallel(self.d2l.forward_backward, X[:k], y[:k], self.params[:k])

    def timed(self, fn, *args):
        """Seconds of ``fn(*args)``, all devices waited for."""
        self.d2l.synchronize()
        start = time.perf_counter()
        fn(*args)
        self.d2l.synchronize()
        return time.perf_counter() - start


def in_threads(d2l) -> dict:
    """Seconds by what was timed: ('compute', k, n) and ('exchange', k, bytes), lists as long."""
    probe = Probe(d2l, real_devices(d2l))
    most = len(probe.params)
    counts = sorted({1, most, *(2**i for i in range(most.bit_length()) if 2**i < most)})
    found = {}
    for _ in range(REPEATS + 1):
        for n in probe.sizes:
            for k in counts:
                found.setdefault(("compute", k, n), []).append(probe.timed(probe.compute, k, n))
        for size, arrays in probe.messages.items() if most > 1 else ():
            found.setdefault(("exchange", most, size), []).append(
                probe.timed(d2l.allreduce, arrays)
            )
    return {what: seconds[1:] for what, seconds in found.items()}  # the first ones warm up


def slowest(ranks) -> dict:
    """What the ranks measured, as one: for what they did together the slowest rank's times."""
    return {what: np.max([rank[what] for rank in ranks], axis=0).tolist() for what in ranks[0]}


def summary(framework, how, algorithm, found, seconds) -> Calibration:
    """The Calibration of what `in_threads` measured."""
    (*_, most), (one, many) = (sorted({key[i] for key in found if key[0] == "compute"})
                               for i in (1, 2))  # fmt: skip
    times = {key: np.array(values) for key, values in found.items()}
    alone = times["compute", 1, one], times["compute", 1, many]
    slowdown = []
    for k in sorted({key[1] for key in found if key[0] == "compute"}):
        small, large = times["compute", k, one], times["compute", k, many]
        ratios = small / alone[0], (large - small) / (alone[1] - alone[0])
        # company makes no device faster: what is below 1 is noise
        slowdown.append((k, *(max(1.0, float(np.median(ratio))) for ratio in ratios)))
    latency = bandwidth = None
    misfit = 0.0
    if most > 1:
        sizes = sorted(key[2] for key in found if key[0] == "exchange")
        # the least of each: they are so short that whatever interrupts them only adds
        a, b, misfit = affine(sizes, [min(found["exchange", most, size]) for size in sizes])
        rounds, share = (2, 2 * (most - 1)) if algorithm == "naive" else (
            2 * (most - 1), 2 * (most - 1) / most)  # fmt: skip
        latency, bandwidth = a / rounds, share / b
    quartiles = np.percentile(alone[1], [25, 50, 75])
    return Calibration(
        framework, how, algorithm, most, 3 * FLOP * many / float(quartiles[1]), latency, bandwidth,
        tuple(slowdown), float((quartiles[2] - quartiles[0]) / quartiles[1]), misfit, seconds,
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(asdict(calibrate(*sys.argv[1:])), indent=1))
