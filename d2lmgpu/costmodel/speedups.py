"""How many times as fast k GPUs of one machine train as one, by what others published.

One number for each kind of links: by how much a device is late, as a share of one GPU's step. It
stands for all that a reader cannot know beforehand: unlike work on the devices, the host, the part
of the exchange that stays in sight. Learned from one half of tests/published/rates.csv and tried on
the other by ``python -m benchmarks.speedups``; all runs have the same batch on each GPU.
"""

from dataclasses import dataclass

from d2lmgpu.costmodel import need
from d2lmgpu.costmodel.model import wait_seconds


@dataclass(frozen=True)
class Range:
    """Something between ``low`` and ``high``, most likely near ``middle``.

    Attributes
    ----------
    low, middle, high : float
    """

    low: float
    middle: float
    high: float


# Mean delay of a device as a share of one GPU's step: the 5th, 50th and 95th percentile of the rows
# that were learned from, where each table counts the same. Below 0: k GPUs ran above k times one.
DELAYS = {
    "NVLink": Range(0.001, 0.049, 0.636),
    "NVSwitch": Range(0.005, 0.034, 0.331),
    "PCIe with peer access": Range(-0.005, 0.065, 0.675),
    "PCIe without peer access": Range(0.004, 0.186, 0.908),
}


def expected_speedup(links: str, k: int) -> Range:
    """Speedup of k GPUs over one, with the same batch on each, as published runs reached it.

    A step of k devices takes 1 + delay (1/2 + ... + 1/k) times that of one, see ``wait_seconds``.

    Parameters
    ----------
    links : str
        A name in ``DELAYS``, how the GPUs of the machine are joined; NVLink is without a switch.
    k : int
        From 1 up.

    Returns
    -------
    Range
        The 5th, 50th and 95th percentile of the published delays, as speedups.

    Raises
    ------
    CostError
        For other links, and for a k below 1.
    """
    need.choice("links", links, DELAYS)
    need.whole("k", k)
    delay, grown = DELAYS[links], wait_seconds(k, 1.0) - 1
    low, middle, high = (k / (1 + d * grown) for d in (delay.high, delay.middle, delay.low))
    return Range(low, middle, high)
