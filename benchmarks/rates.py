"""One GPU's published rates beside those expected of another's: ``python -m benchmarks.rates``.

The rows of tests/published/rates.csv of one GPU. Two GPUs are compared where one source, a
repository or a site, has the same network on both, in 16 bits on both or in 32. The source with the
most GPUs is learned from, two exponents by least squares; all others are kept.
"""

import csv
import math
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean, median

import numpy as np

from d2lmgpu.costmodel.gpus import BANDWIDTH, GPUS, HIGH, LOW, PEAK

PUBLISHED = Path(__file__).parents[1] / "tests" / "published" / "rates.csv"
NAMES = {  # as printed -> the GPU; the form of the board where it is named
    "V100 16GB": "V100",
    "V100 32GB": "V100",
    "A100": "A100 40GB",
    "A100 40GB PCIe": "A100 40GB",
    "A100 40GB SXM4": "A100 40GB",
    "A100 80GB SXM4": "A100 80GB",
    "H100 80GB PCIe Gen5": "H100 PCIe",
    "H100 80GB SXM5": "H100",
    "RTX 2080Ti": "RTX 2080 Ti",
    "RTX 2080 Ti 11GB": "RTX 2080 Ti",
    "RTX 3090 24GB": "RTX 3090",
    "RTX 4090 24GB": "RTX 4090",
}
# As printed -> what is multiplied in: without a flag PyTorch 1.11 took tf32 where there is one.
PRECISIONS = {"tf32": "tf32", "fp32": "tf32", "mixed": "16 bit", "fp16": "16 bit", "bf16": "16 bit"}
LEVELS = (0.05, 0.95)
# Of the pairs that are kept: the median error and the share inside of the range, at first.
AT_FIRST = {"tf32": (0.2594, 0.625), "16 bit": (0.1496, 0.9166)}


@dataclass(frozen=True)
class Pair:
    """A network on two GPUs, as one source has it; numbers are logarithms of ratios."""

    source: str
    network: str
    format: str
    measured_on: str
    wanted_on: str
    rate: float

    @property
    def peak(self) -> float:
        return math.log(
            GPUS[self.wanted_on].peaks[self.format] / GPUS[self.measured_on].peaks[self.format]
        )

    @property
    def bandwidth(self) -> float:
        return math.log(GPUS[self.wanted_on].bandwidth / GPUS[self.measured_on].bandwidth)


def pairs() -> list[Pair]:
    """All of them, in both directions: the median rate of each GPU over its batches."""
    rates = defaultdict(lambda: defaultdict(list))
    with open(PUBLISHED, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gpu = NAMES.get(row["gpu"], row["gpu"])
            kind = next((k for p, k in PRECISIONS.items() if row["precision"].startswith(p)), None)
            if row["num_gpus"] == "1" and gpu in GPUS and kind:
                source = row["source"].split(" at ")[0].split("/blog/")[0]
                of = source, row["network"], row["framework"], row["unit"], kind
                rates[of][gpu].append(float(row["rate"]))
    return [
        Pair(source, network, kind, first, second, math.log(median(of[second]) / median(of[first])))
        for (source, network, _, _, kind), of in rates.items()
        for first, second in permutations(of, 2)
    ]


def split(all_pairs) -> tuple[list[Pair], list[Pair]]:
    """Those of the source that has most GPUs, and those of all others."""
    gpus = defaultdict(set)
    for pair in all_pairs:
        gpus[pair.source].add(pair.measured_on)
    learned = max(sorted(gpus), key=lambda source: len(gpus[source]))
    return tuple([p for p in all_pairs if (p.source == learned) is half] for half in (True, False))


def exponents(of) -> np.ndarray:
    """Of peaks and of bandwidths."""
    terms = np.array([[pair.peak, pair.bandwidth] for pair in of])
    return np.linalg.lstsq(terms, np.array([pair.rate for pair in of]), rcond=None)[0]


def off(of, peak, bandwidth) -> np.ndarray:
    """Logarithms of published over expected, with these exponents."""
    return np.array([pair.rate - peak * pair.peak - bandwidth * pair.bandwidth for pair in of])


def learn(of) -> list[float]:
    """What ``d2lmgpu.costmodel.gpus`` knows: two exponents, then the range."""
    learned = exponents(of)
    return [*map(float, learned), *map(float, np.exp(np.quantile(off(of, *learned), LEVELS)))]


def score(of) -> dict[str, float]:
    """Median errors by the peaks alone, by the bandwidths alone and by both, and coverage."""

    def error(peak, bandwidth):
        return median(abs(math.expm1(-e)) for e in off(of, peak, bandwidth))

    inside = [LOW <= math.exp(e) <= HIGH for e in off(of, PEAK, BANDWIDTH)]
    return {
        "pairs": len(of) // 2,
        "peaks": error(1, 0),
        "bandwidths": error(0, 1),
        "expected": error(PEAK, BANDWIDTH),
        "inside": fmean(inside),
    }


def worse(kept) -> list[str]:
    """The formats in which the pairs that are kept are told worse than at first."""
    formats = []
    for format, (error, inside) in AT_FIRST.items():
        now = score([pair for pair in kept if pair.format == format])
        if now["expected"] > error or now["inside"] < inside:
            formats.append(format)
    return formats


def main() -> int:
    """Print the figures; returns how many formats got worse."""
    learned, kept = split(pairs())
    print("learned:", *(f"{number:.3f}" for number in learn(learned)))
    for half, of in {"learned": learned, "kept": kept}.items():
        now = score(of)
        print(
            f"{half:8} {now['pairs']:4} pairs: by peaks {now['peaks']:.1%} off, by bandwidths "
            f"{now['bandwidths']:.1%}, by both {now['expected']:.1%}, {now['inside']:.0%} inside"
        )
    kept.sort(key=lambda pair: -abs(off([pair], PEAK, BANDWIDTH)[0]))
    for pair in kept[:20:2]:
        expected = math.exp(PEAK * pair.peak + BANDWIDTH * pair.bandwidth)
        print(
            f"{math.exp(pair.rate):5.2f}, expected {expected:5.2f}: {pair.network}, "
            f"{pair.format}, {pair.measured_on} -> {pair.wanted_on} ({pair.source})"
        )
    return len(worse(kept))


if __name__ == "__main__":
    sys.exit(main())
