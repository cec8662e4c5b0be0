"""One GPU's rate carried over to another GPU, by what others published.

A network is bound by multiplications in some layers and by memory in others. So neither the peaks
nor the bandwidths of two GPUs say how many times as fast one of them trains; a power of both comes
nearest. Learned from one source in tests/published/rates.csv and tried on all others by
``python -m benchmarks.rates``. A rate that was measured on the GPU itself is always better.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.costmodel import need
from d2lmgpu.costmodel.speedups import Range

FORMATS = ("float32", "tf32", "16 bit")  # that a GPU multiplies in
# Of the ratios of two GPUs' peaks and of their bandwidths, by least squares; then the 5th and the
# 95th percentile of what was reached, as a multiple of what these powers say.
PEAK, BANDWIDTH = 0.371, 0.429
LOW, HIGH = 0.650, 1.538


@dataclass(frozen=True)
class GPU:
    """What data sheets say of a GPU, of which there is a published rate.

    Attributes
    ----------
    name : str
    peaks : dict of str to float
        Of each of ``FORMATS``: multiplications and additions a second, dense, with sums in float32.
        A GPU that has no tf32 multiplies in float32 instead.
    bandwidth : float
        Of its memory, bytes a second.
    source : str
    """

    name: str
    peaks: dict[str, float]
    bandwidth: float
    source: str


def _read(path) -> dict[str, GPU]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        row["gpu"]: GPU(
            row["gpu"],
            {name: 1e12 * float(row[name] or row["float32"]) for name in FORMATS},
            1e9 * float(row["gigabytes_per_second"]),
            row["source"],
        )
        for row in rows
    }


GPUS = _read(Path(__file__).with_suffix(".csv"))


def expected_rate(rate: float, measured_on: str, wanted_on: str, format: str) -> Range:
    """What one GPU would reach, from the rate of another with the same training.

    Parameters
    ----------
    rate : float
        Examples or tokens a second, with a batch that keeps the GPU busy.
    measured_on, wanted_on : str
        Names in ``GPUS``.
    format : str
        One of ``FORMATS``: what both multiply in. Where a GPU has no tf32 it is float32.

    Returns
    -------
    Range
        Between ``low`` and ``high`` were nine in ten published rates that it was learned from; of
        those that it was not, in 16 bits nine in ten, too, but in 32 bits six in ten, where one GPU
        had tf32 and the other none. For less than such a range, measure: a minute of the training
        on that GPU.

    Raises
    ------
    CostError
        For a rate that is not above 0, another GPU and another format.
    """
    need.positive("rate", rate)
    need.choice("measured_on", measured_on, GPUS)
    need.choice("wanted_on", wanted_on, GPUS)
    need.choice("format", format, FORMATS)
    if measured_on == wanted_on:
        return Range(rate, rate, rate)
    middle = rate * _times_as_fast(GPUS[measured_on], GPUS[wanted_on], format)
    return Range(LOW * middle, middle, HIGH * middle)


def _times_as_fast(gpu, other, format):
    """How many times as fast ``other`` is expected to train, with the exponents learned."""
    peaks = other.peaks[format] / gpu.peaks[format]
    return peaks**PEAK * (other.bandwidth / gpu.bandwidth) ** BANDWIDTH
