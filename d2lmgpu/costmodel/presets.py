"""Named machines for the cost model: how fast their devices compute and talk.

Each number has a `Source`: whether it was measured or printed in a data sheet, what exactly it
counts, and where it stands. Bandwidths are bytes a second in one direction; compute is a peak, and
what is reached is less.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from d2lmgpu.costmodel import need
from d2lmgpu.machine.checks import is_count, is_list, is_real


@dataclass(frozen=True)
class Link:
    """What joins two devices, or two machines.

    Parameters
    ----------
    latency : float
        Seconds a message.
    bandwidth : float
        Bytes a second and direction.

    Raises
    ------
    CostError
        For a latency below 0, and for a bandwidth that is not above 0.
    """

    latency: float
    bandwidth: float

    def __post_init__(self):
        need.real("latency", self.latency)
        need.positive("bandwidth", self.bandwidth)


# Seconds for each step of a ring, see `_LATENCIES`. For short messages NCCL takes other protocols,
# LL (NVLink 0.47, PCIe 1.0, network 2.7 µs, at a quarter of the bandwidth) or LL128 (1.9, 2.5,
# 4.0); and each call costs 8.4 µs more (line 56). This model has neither.
NVLINK, PCIE, NET = 3.4e-6, 5.7e-6, 9.6e-6
GBIT = 1e9 / 8

PCIE3 = Link(PCIE, 15.75e9)  # 16 lanes at 8 GT/s, 128b/130b (PCI-SIG, PCI Express 3.0)


def tcp(bandwidth) -> Link:
    """What TCP carries over an Ethernet: 1448 of the 1514 bytes of a full frame.

    1500 bytes have headers of IP (20) and TCP (20, and 12 for its clock) in them, and one of 14
    before them. The rest of what a real cable carries (24 more: preamble, checksum, gap) a shaped
    virtual link does not count.

    Parameters
    ----------
    bandwidth : float
        Of the Ethernet, bytes a second.

    Returns
    -------
    Link

    Raises
    ------
    CostError
        For a bandwidth that is not above 0.
    """
    need.positive("bandwidth", bandwidth)
    return Link(NET, bandwidth * 1448 / 1514)


NETWORKS = {f"{n} Gb Ethernet": Link(NET, n * GBIT) for n in (10, 25, 100, 400)}


HOWS = ("measured", "data sheet", "counted", "assumed")


@dataclass(frozen=True)
class Source:
    """Where the numbers of some fields of a ``Machine`` are from.

    Parameters
    ----------
    fields : str
        Their names.
    how : str
        "measured", "data sheet", "counted" or "assumed".
    counts : str
        What exactly the numbers count.
    where : str
        Document, and the line or the passage.

    Raises
    ------
    CostError
        For another ``how``, and for what is no text.
    """

    fields: str
    how: str
    counts: str
    where: str

    def __post_init__(self):
        need.choice("how", self.how, HOWS)
        for name in ("fields", "counts", "where"):
            need.kind(name, getattr(self, name), str)


@dataclass(frozen=True)
class Machine:
    """Equal devices on one kind of link, and the network to other such machines.

    Parameters
    ----------
    name : str
    devices : int
    link : Link
        Between its devices.
    network : Link
        Of the machine to the others.
    flops : float
        Peak of a device in float32, operations a second.
    matrix_flops : float
        Peak in its fastest dense 16-bit format, operations a second.
    sources : list of Source
    shared : bool
        Whether the devices share one path of the link's bandwidth, as PCIe through the host.
    overlap : bool
        Whether sending can go on while the backward pass runs.
    slowdown : sequence of tuple
        Points (k, of what a step costs whatever its batch, of what an example costs), k rising from
        1: how many times as long devices take when k of them compute at once, as measured.
    bandwidths : sequence of tuple
        Points (k, bytes a second), k rising: what each of k devices of one machine sends with,
        where that depends on their number; empty where it is the link's.

    Raises
    ------
    CostError
        For what no machine can have.
    """

    name: str
    devices: int
    link: Link
    network: Link
    flops: float
    matrix_flops: float
    sources: tuple[Source, ...]
    shared: bool = False
    overlap: bool = True
    slowdown: tuple[tuple[int, float, float], ...] = ((1, 1.0, 1.0),)
    bandwidths: tuple[tuple[int, float], ...] = ()

    def __post_init__(self):
        need.whole("devices", self.devices)
        kinds = {"name": str, "shared": bool, "overlap": bool, "link": Link, "network": Link}
        for name, kind in kinds.items():
            need.kind(name, getattr(self, name), kind)
        right = is_list(self.sources) and all(isinstance(source, Source) for source in self.sources)
        need(right, "sources", self.sources, "a list of Source")
        need.positive("flops", self.flops)
        need.positive("matrix_flops", self.matrix_flops)
        need(
            _are_points(self.slowdown, 3) and self.slowdown[0][0] == 1,
            "slowdown",
            self.slowdown,
            "points (k, of a step, of an example) of numbers above 0, with k rising from 1",
        )
        need(
            is_list(self.bandwidths)
            and (len(self.bandwidths) == 0 or _are_points(self.bandwidths, 2)),
            "bandwidths",
            self.bandwidths,
            "points (k, bytes a second) of numbers above 0, with k rising",
        )

    def link_among(self, k: int) -> Link:
        """The link as each of k devices of one machine has it, linear between ``bandwidths``.

        Parameters
        ----------
        k : int
            Devices that take part, from 1 up.

        Returns
        -------
        Link

        Raises
        ------
        CostError
            For another k.
        """
        need.whole("k", k)
        bandwidth = self.link.bandwidth
        if self.bandwidths:
            bandwidth = float(np.interp(k, *np.array(self.bandwidths, float).T))
        return replace(self.link, bandwidth=bandwidth / k if self.shared else bandwidth)

    def slowed(self, k: int) -> tuple[float, float]:
        """The two slowdowns for k devices, linear between the measured points.

        Parameters
        ----------
        k : int
            Devices that compute at once, from 1 up.

        Returns
        -------
        tuple of float
            Of what a step costs whatever its batch, and of what an example costs.

        Raises
        ------
        CostError
            For another k.
        """
        need.whole("k", k)
        counts, *factors = np.array(self.slowdown, float).T
        fixed, example = (float(np.interp(k, counts, factor)) for factor in factors)
        return fixed, example


def _are_points(points, length) -> bool:
    """At least one (k, …) of that length: a count, rising, and numbers above 0."""
    if not (is_list(points) and len(points)):
        return False
    for point in points:
        if not (is_list(point) and len(point) == length and is_count(point[0])):
            return False
        if not all(is_real(value) and value > 0 for value in point[1:]):
            return False
    return all(point[0] < next_point[0] for point, next_point in pairwise(points))


_ETH10, _ETH25 = NETWORKS["10 Gb Ethernet"], NETWORKS["25 Gb Ethernet"]
_ETH100, _8_NDR = NETWORKS["100 Gb Ethernet"], Link(NET, 8 * 400 * GBIT)

_BUS = "bus bandwidth: 2(k-1)/k times the array's bytes, over the time of an allreduce"
_LINKS = "bytes a second in one direction, the most that the links carry"
_PEAK = "operations a second, the most that the device can do"


def _sheet(fields, what) -> Source:
    """A data sheet's numbers: compute, or links and networks."""
    return Source(fields, "data sheet", _PEAK if "flops" in fields else _LINKS, what)


_LATENCIES = Source(
    "latencies",
    "assumed",
    "seconds that NCCL itself assumes for each step of a ring, in its protocol for long messages",
    "NVIDIA/nccl, src/graph/tuning.cc at 01afd20, line 63, Simple: NVLink 3.4, PCIe 5.7, network "
    "9.6 µs",
)
_PCIE3 = _sheet("link", "PCI-SIG, PCI Express 3.0: 16 lanes at 8 GT/s, 128b/130b")
_NVLINK4 = Source(
    "link",
    "measured",
    _BUS,
    "stas00/ml-engineering, network/benchmarks/results/all-reduce-8xH200.md at c53741b: eight "
    "H200, 16 GiB, 367.61 GB/s without sums in the switch (with them 482.26); the links' peak is "
    "450",
)

_PRESETS = [
    Machine(
        "K80",
        devices=8,
        link=PCIE3,
        network=_ETH10,
        flops=4.37e12,
        matrix_flops=4.37e12,
        sources=(
            _PCIE3,
            _sheet("network", "AWS p2.8xlarge: 10 Gb Ethernet, eight GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA Tesla K80: 8.74 TFLOP/s for a board's two GPUs"),
        ),
        shared=True,
    ),
    Machine(
        "K80 x16",
        devices=16,
        link=PCIE3,
        network=_ETH25,
        flops=4.37e12,
        matrix_flops=4.37e12,
        sources=(
            _PCIE3,
            _sheet("network", "AWS p2.16xlarge: 25 Gb Ethernet, sixteen GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA Tesla K80: 8.74 TFLOP/s for a board's two GPUs"),
        ),
        shared=True,
    ),
    Machine(
        "M60",
        devices=4,
        link=PCIE3,
        network=_ETH25,
        flops=4.8e12,
        matrix_flops=4.8e12,
        sources=(
            _PCIE3,
            _sheet("network", "AWS g3.16xlarge: 25 Gb Ethernet, four GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA Tesla M60: 9.65 TFLOP/s for a board's two GPUs"),
        ),
        shared=True,
    ),
    Machine(
        "P100",
        devices=4,
        link=PCIE3,
        network=_ETH25,
        flops=9.3e12,
        matrix_flops=18.7e12,
        sources=(
            _PCIE3,
            _sheet("network", "Horovod (arXiv 1802.05799): 25 Gb Ethernet, four GPUs a server"),
            _sheet("flops, matrix_flops", "NVIDIA Tesla P100 (PCIe): 9.3 and 18.7 TFLOP/s"),
        ),
    ),
    Machine(
        "V100 PCIe",
        devices=4,
        link=PCIE3,
        network=_ETH10,
        flops=14e12,
        matrix_flops=112e12,
        sources=(
            _PCIE3,
            _sheet("network", "AWS p3.8xlarge: 10 Gb Ethernet, four GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA V100 (PCIe): 14 and 112 TFLOP/s"),
        ),
    ),
    Machine(
        "V100 NVLink",
        devices=8,
        link=Link(NVLINK, 150e9),
        network=_ETH100,
        flops=15.7e12,
        matrix_flops=125e12,
        sources=(
            _sheet("link", "NVIDIA V100 (SXM2): six NVLinks of 25 GB/s each way"),
            Source(
                "bandwidths",
                "counted",
                "links out of a device in all rings that fit, 25 GB/s each",
                "`nvidia-smi topo -m` of a DGX-1: GPU 0 and 1 are joined by one link (NV1), others "
                "by two (NV2: 50 GB/s); rings of GPU 0 to 3 use four links of each, of all eight "
                "GPUs six",
            ),
            _sheet("network", "AWS p3dn.24xlarge: 100 Gb Ethernet, eight GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA V100 (SXM2): 15.7 and 125 TFLOP/s"),
        ),
        bandwidths=((2, 25e9), (4, 100e9), (8, 150e9)),
    ),
    Machine(
        "RTX 4090",
        devices=4,
        link=Link(PCIE, 3.375e9),
        network=_ETH10,
        flops=82.6e12,
        matrix_flops=165e12,
        sources=(
            Source(
                "link, bandwidths",
                "measured",
                _BUS + "; printed as 4.5 GB/s, 2N over the time, which is times (k-1)/k here",
                "smolix/d2l-neu at 13fe15c, multi-gpu-practice.md: `beta = 4.5e9`, `2N/beta`; four "
                "cards that cannot reach each other's memory",
            ),
            Source("network", "assumed", _LINKS, "no published run has two such machines"),
            _sheet("flops, matrix_flops", "NVIDIA Ada white paper: 82.6 TFLOP/s, 165 in bf16"),
            Source(
                "overlap",
                "measured",
                "milliseconds that the exchange adds to a step: 15 of 20",
                "the same file, `comm_probe.py`; its rows are nearer to nothing hidden than to all "
                "that DDP could hide",
            ),
        ),
        overlap=False,
        bandwidths=((2, 2.25e9), (4, 3.375e9)),
    ),
    Machine(
        "A100",
        devices=8,
        link=Link(NVLINK, 235e9),
        network=Link(NET, 8 * 200 * GBIT),
        flops=19.5e12,
        matrix_flops=312e12,
        sources=(
            Source(
                "link",
                "measured",
                _BUS,
                "NVIDIA/nccl, src/graph/tuning.cc at 01afd20, line 112 (`if (compCap80) busBw = "
                "std::min(busBw, 235.0f)`); the same from nccl-tests in stas00/ml-engineering, "
                "network/README.md at 0030e63; the links' peak is 300",
            ),
            _sheet("network", "NVIDIA DGX A100: 200 Gb InfiniBand for each of eight GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA A100 (SXM4): 19.5 and 312 TFLOP/s"),
        ),
    ),
    Machine(
        "H100",
        devices=8,
        link=Link(NVLINK, 367.61e9),
        network=_8_NDR,
        flops=67e12,
        matrix_flops=989e12,
        sources=(
            replace(_NVLINK4, where=_NVLINK4.where + "; an H100 has the same NVLink"),
            _sheet("network", "NVIDIA DGX H100: 400 Gb InfiniBand for each of eight GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA H100 (SXM5): 67 and, dense, 989 TFLOP/s"),
        ),
    ),
    Machine(
        "H200",
        devices=8,
        link=Link(NVLINK, 367.61e9),
        network=_8_NDR,
        flops=67e12,
        matrix_flops=989e12,
        sources=(
            _NVLINK4,
            _sheet("network", "NVIDIA DGX H200: 400 Gb InfiniBand for each of eight GPUs"),
            _sheet("flops, matrix_flops", "NVIDIA H200 (SXM): 67 and, dense, 989 TFLOP/s"),
        ),
    ),
]

PRESETS = {
    machine.name: replace(machine, sources=(*machine.sources, _LATENCIES)) for machine in _PRESETS
}
