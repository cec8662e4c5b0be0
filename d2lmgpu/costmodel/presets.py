"""Named machines for the cost model: how fast their devices compute and talk, each with its source.

Bandwidths are bytes a second in one direction, compute is the peak of the data sheet: what is
reached is less. Latencies are those that NCCL itself assumes per step of a ring (NVIDIA/nccl,
src/graph/tuning.cc at 01afd20, protocol Simple): NVLink 3.4, PCIe 5.7, network 9.6 µs.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from d2lmgpu.costmodel import need
from d2lmgpu.machine.checks import is_count, is_list, is_real


@dataclass(frozen=True)
class Link:
    """latency in seconds per message, bandwidth in bytes a second and direction."""

    latency: float
    bandwidth: float

    def __post_init__(self):
        need.real("latency", self.latency)
        need.positive("bandwidth", self.bandwidth)


NVLINK, PCIE, NET = 3.4e-6, 5.7e-6, 9.6e-6  # seconds
GBIT = 1e9 / 8

PCIE3 = Link(PCIE, 15.75e9)  # 16 lanes at 8 GT/s, 128b/130b (PCI-SIG, PCI Express 3.0)


def tcp(bandwidth) -> Link:
    """What TCP carries over an Ethernet of ``bandwidth``: 1448 of the 1514 bytes of a full frame.

    1500 bytes have headers of IP (20) and TCP (20, and 12 for its clock) in them, and one of 14
    before them. The rest of what a real cable carries (24 more: preamble, checksum, gap) a shaped
    virtual link does not count.
    """
    need.positive("bandwidth", bandwidth)
    return Link(NET, bandwidth * 1448 / 1514)


NETWORKS = {f"{n} Gb Ethernet": Link(NET, n * GBIT) for n in (10, 25, 100, 400)}


@dataclass(frozen=True)
class Machine:
    """`devices` equal devices on `link`; each machine has `network` to the others."""

    name: str
    devices: int
    link: Link
    network: Link
    flops: float  # peak of a device in float32, operations a second
    matrix_flops: float  # peak in its fastest dense 16-bit format, operations a second
    source: str  # where the numbers are from
    shared: bool = False  # by the devices: one path of that bandwidth, as PCIe through the host
    overlap: bool = True  # whether sending can go on while the backward pass runs
    # Points (k, of what a step costs whatever its batch, of what an example costs), k rising from
    # 1: how many times as long devices take when k of them compute at once, as measured.
    slowdown: tuple[tuple[int, float, float], ...] = ((1, 1.0, 1.0),)

    def __post_init__(self):
        need.whole("devices", self.devices)
        for name, kind in {"name": str, "source": str, "shared": bool, "overlap": bool,
                           "link": Link, "network": Link}.items():  # fmt: skip
            need.kind(name, getattr(self, name), kind)
        need.positive("flops", self.flops)
        need.positive("matrix_flops", self.matrix_flops)
        right = is_list(self.slowdown) and len(self.slowdown) and all(map(_is_point, self.slowdown))
        counts = [k for k, _, _ in self.slowdown] if right else []
        right = counts[:1] == [1] and all(k < after for k, after in pairwise(counts))
        allowed = "points (k, of a step, of an example) of numbers above 0, with k rising from 1"
        need(right, "slowdown", self.slowdown, allowed)

    def slowed(self, k: int) -> tuple[float, float]:
        """The two slowdowns for k devices, linear between the measured points."""
        need.whole("k", k)
        counts, *factors = np.array(self.slowdown, float).T
        fixed, example = (float(np.interp(k, counts, factor)) for factor in factors)
        return fixed, example


def _is_point(value) -> bool:
    if not (is_list(value) and len(value) == 3):
        return False
    k, *factors = value
    return is_count(k) and all(is_real(factor) and factor > 0 for factor in factors)


_ETH10, _ETH25 = NETWORKS["10 Gb Ethernet"], NETWORKS["25 Gb Ethernet"]
_ETH100, _8_NDR = NETWORKS["100 Gb Ethernet"], Link(NET, 8 * 400 * GBIT)

_PRESETS = [
    Machine(
        "K80", 8, PCIE3, _ETH10, 4.37e12, 4.37e12,
        "NVIDIA Tesla K80 data sheet: 8.74 TFLOP/s for the board's two GPUs, PCIe 3.0; eight of "
        "them and 10 Gb Ethernet as in AWS p2.8xlarge", shared=True,
    ),
    Machine(
        "K80 x16", 16, PCIE3, _ETH25, 4.37e12, 4.37e12,
        "NVIDIA Tesla K80 data sheet; sixteen GPUs and 25 Gb Ethernet as in AWS p2.16xlarge",
        shared=True,
    ),
    Machine(
        "M60", 4, PCIE3, _ETH25, 4.8e12, 4.8e12,
        "NVIDIA Tesla M60 data sheet: 9.65 TFLOP/s for the board's two GPUs, PCIe 3.0; four of "
        "them and 25 Gb Ethernet as in AWS g3.16xlarge", shared=True,
    ),
    Machine(
        "P100", 4, PCIE3, _ETH25, 9.3e12, 18.7e12,
        "NVIDIA Tesla P100 (PCIe) data sheet; four of them and 25 Gb Ethernet as in Horovod "
        "(arXiv 1802.05799)",
    ),
    Machine(
        "V100 PCIe", 4, PCIE3, _ETH10, 14e12, 112e12,
        "NVIDIA V100 data sheet, PCIe version: 14 and 112 TFLOP/s, 32 GB/s both directions",
    ),
    Machine(
        "V100 NVLink", 8, Link(NVLINK, 150e9), _ETH100, 15.7e12, 125e12,
        "NVIDIA V100 data sheet, SXM2 version: 15.7 and 125 TFLOP/s, NVLink 300 GB/s both "
        "directions; eight of them and 100 Gb Ethernet as in AWS p3dn.24xlarge",
    ),
    Machine(
        "RTX 4090", 4, Link(PCIE, 4.5e9), _ETH10, 82.6e12, 165e12,
        "NVIDIA Ada architecture white paper: 82.6 TFLOP/s, 165 TFLOP/s bf16; four of them without "
        "peer access: 4.5 GB/s per device measured by d2l-neu; that nothing of the exchange is "
        "hidden is concluded here: its step with it takes 15 ms more, where 10 would be sent",
        overlap=False,
    ),
    Machine(
        "A100", 8, Link(NVLINK, 300e9), Link(NET, 8 * 200 * GBIT), 19.5e12, 312e12,
        "NVIDIA A100 data sheet, SXM4: 19.5 and 312 TFLOP/s, NVLink 600 GB/s both directions; DGX "
        "A100: 200 Gb InfiniBand per GPU",
    ),
    Machine(
        "H100", 8, Link(NVLINK, 450e9), _8_NDR, 67e12, 989e12,
        "NVIDIA H100 data sheet, SXM5: 67 and (dense) 989 TFLOP/s, NVLink 900 GB/s both "
        "directions; DGX H100: 400 Gb InfiniBand per GPU",
    ),
    Machine(
        "H200", 8, Link(NVLINK, 396e9), _8_NDR, 67e12, 989e12,
        "NVIDIA H200 data sheet, SXM: 67 and (dense) 989 TFLOP/s; 396 of NVLink's 450 GB/s "
        "measured pairwise (stas00/ml-engineering)",
    ),
]  # fmt: skip

PRESETS = {machine.name: machine for machine in _PRESETS}
