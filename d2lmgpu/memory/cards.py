"""How much memory GPUs have for a training, and whether what it takes fits.

``cards.csv`` has what PyTorch itself says in messages of its that people have published: "GPU 0 has
a total capacity of 14.56 GiB", and of each card the smallest. That is less than its name says: the
driver keeps some. Some of the messages also tell how much the process held beside PyTorch's
allocator, CUDA's context and its libraries.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.memory import need

GIB = 1 << 30
# Of the published figures (benchmarks/published_memory.csv) all but two are at most a fifth
# above what is told: workspaces of libraries, what else a script keeps.
MISS = 0.2
FITS, DOES_NOT, OPEN = "fits", "does not fit", "cannot be told"


@dataclass(frozen=True)
class Card:
    """A GPU.

    Attributes
    ----------
    name : str
    total : int
        Bytes that PyTorch says it has.
    source : str
        Where it has said so.
    """

    name: str
    total: int
    source: str


@dataclass(frozen=True)
class OnCard:
    """Whether a training fits on a card, as far as can be told.

    Attributes
    ----------
    card : Card
    verdict : str
        "fits", "does not fit" or "cannot be told".
    low, high : int
        It takes between so many bytes of the card.
    """

    card: Card
    verdict: str
    low: int
    high: int

    def __str__(self):
        return (
            f"{self.verdict}: {self.low / GIB:.1f} to {self.high / GIB:.1f} GiB, modelled, of the "
            f"{self.card.total / GIB:.1f} GiB of {self.card.name}"
        )


with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as file:
    _rows = list(csv.DictReader(file))
CARDS = {
    row["card"]: Card(row["card"], int(float(row["total_gib"]) * GIB), row["source"])
    for row in _rows
}
_contexts = [float(row["context_gib"]) * GIB for row in _rows if row["context_gib"]]
CONTEXT = int(min(_contexts)), int(max(_contexts))  # bytes beside the allocator, whichever the card


def on_card(least: int, reserved: int, card: str) -> OnCard:
    """Whether what the allocator needs ``least``, and would hold, ``reserved``, fits; in bytes."""
    need.choice("card", card, CARDS)
    return on_total(least, reserved, CARDS[card])


def on_total(least: int, reserved: int, card: Card) -> OnCard:
    """The same for any ``card``."""
    low, high = int(least) + CONTEXT[0], int(reserved * (1 + MISS)) + CONTEXT[1]
    verdict = FITS if high <= card.total else DOES_NOT if low > card.total else OPEN
    return OnCard(card, verdict, low, high)
