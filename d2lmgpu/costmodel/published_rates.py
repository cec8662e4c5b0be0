"""Published throughputs, each with source and hardware, and what the model may do with it.

They are in published_rates.csv, as printed; rates are of all devices together.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.costmodel import need

FASHION_MNIST = 60_000  # training images, also of MNIST
# Parameters may be fitted to the row; it is predicted and compared; it is for reading, or predicted
# although hardware or set-up is not named well enough to count.
USES = ("fit", "held out", "reported")


@dataclass(frozen=True)
class PublishedRow:
    """A measured speed that somebody published, of examples or tokens."""

    table: str
    model: str
    k: int  # devices, all together
    batch_size: int  # of a step, over all devices
    rate: float  # a second, of all devices
    format: str  # that the devices multiply in, "float32", "tf32" or "16 bit"
    use: str  # one of `USES`
    hardware: str
    source: str


def _read(path) -> list[PublishedRow]:
    with open(path, encoding="utf-8", newline="") as file:
        printed = list(csv.DictReader(file))
    for row in printed:
        number, unit = float(row.pop("number")), row.pop("unit")
        row["rate"] = FASHION_MNIST / number if unit == "seconds an epoch" else number
        row["k"], row["batch_size"] = int(row["k"]), int(row["batch_size"])
    return [PublishedRow(**row) for row in printed]


ROWS = _read(Path(__file__).with_suffix(".csv"))

# Single points without a curve: efficiency at k devices against `base` devices.
EFFICIENCIES = [
    ("Goyal et al. 2017", "resnet-50", 8, 256, 0.90, "P100, 8 a server, 50 Gb Ethernet"),
    ("Horovod 2018", "inception-v3", 1, 512, 0.90, "128 servers with 4 P100, 25 Gb Ethernet"),
    ("Horovod 2018", "vgg-16", 1, 512, 0.68, "128 servers with 4 P100, 25 Gb Ethernet"),
]


def rows(table: str, use: str | None = None) -> list[PublishedRow]:
    """The rows of a table, all or those of one use."""
    need.choice("table", table, tables())
    if use is not None:
        need.choice("use", use, USES)
    return [row for row in ROWS if row.table == table and use in (None, row.use)]


def models(table: str) -> list[str]:
    """Names of the models in a table, in order."""
    return list(dict.fromkeys(row.model for row in rows(table)))


def tables() -> list[str]:
    """Names of the tables, in order."""
    return list(dict.fromkeys(row.table for row in ROWS))
