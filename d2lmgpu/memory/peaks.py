"""The peak of well-known networks, at once and without PyTorch: the largest of a few sums.

Each storage of a training step is a product of a few of the numbers of a network: batch, tokens,
width ... So what is in use at a moment is a sum of such products, and the peak is the largest of
these sums. ``peaks.json`` has those that can be the largest; ``benchmarks.peak_sums`` counts them
with ``d2lmgpu.torch.fits``, and a test compares other sizes with it.
"""

import json
from heapq import heapreplace
from math import prod
from pathlib import Path

from d2lmgpu.memory import need
from d2lmgpu.memory.cards import OnCard, on_card

DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
PRECISIONS = tuple(DATA["precisions"])
OPTIMIZERS = tuple(DATA["optimizers"])
STRATEGIES = tuple(DATA["strategies"])
# ZeRO-1 is DDP with a share of the optimizer.
SUMS_OF = {"ZeRO-1": "DDP"}
# What an optimizer makes has the letter z; SGD makes nothing.
REMEMBERS = {"SGD": 0, "AdamW": 1}
MANY = 1000  # layers: with more, the share is hardly another
# What the allocator cannot do without, and what it holds, as multiples of the peak: the least of
# the sizes that were compared with ``fits``, and what nine in ten of them are below.
LEAST, HELD = DATA["least"], DATA["held"]
# What a product is made of: the numbers of a language model; an image network has the first two.
NUMBERS = {
    "n": "batch_size",
    "k": "devices",
    "L": "num_layers",
    "d": "hidden_size",
    "h": "num_heads",
    "g": "num_kv_heads",
    "f": "intermediate_size",
    "V": "vocab_size",
    "T": "sequence_length",
}


def peak(kind, precision, optimizer, strategy, **numbers) -> float:
    """The bytes at the peak of a step, as ``d2lmgpu.torch.fits`` counts them.

    Parameters
    ----------
    kind : str
        "GPT-2", "BERT" or "Llama", a language model with any numbers, or a network of those in
        ``peaks.json`` that have one size.
    precision, optimizer, strategy : str
        One of `PRECISIONS`, `OPTIMIZERS` and `STRATEGIES`, each. "bfloat16" is all of it in 16
        bits. ZeRO-1 is PyTorch's ``ZeroRedundancyOptimizer`` beside DDP; FSDP is ``fully_shard``,
        and ZeRO-2 is that with ``reshard_after_forward=False``.
    numbers : int
        ``batch_size`` on each of ``devices``, and of a language model the rest of `NUMBERS`.
    """
    need.choice("kind", kind, DATA["sums"])
    need.choice("precision", precision, PRECISIONS)
    need.choice("optimizer", optimizer, OPTIMIZERS)
    need.choice("strategy", strategy, STRATEGIES)
    for name in NUMBERS.values():
        if name in numbers or name in ("batch_size", "devices"):
            need.whole(name, numbers.get(name))
    letters = {letter: numbers.get(name, 1) for letter, name in NUMBERS.items()}
    letters |= {"1": 1, "a": letters["d"] / letters["h"], "/k": 1 / letters["k"]}
    letters |= {"b": int(letters["k"] > 1)}  # DDP's buckets
    own = share(kind, letters) if strategy == "ZeRO-1" else 1
    letters |= {"z": own * REMEMBERS[optimizer]}
    return max(
        sum(size * value(product, letters) for product, size in terms.items())
        for terms in DATA["sums"][kind][f"{precision}, {SUMS_OF.get(strategy, strategy)}"]
    )


def value(product, letters) -> float:
    """What a product of letters is; a whole number stands for itself."""
    return prod(letters[x] if x in letters else int(x) for x in product.split())


def share(kind, letters) -> float:
    """The share of all parameters whose state the first device has with ZeRO-1.

    As PyTorch's ``ZeroRedundancyOptimizer`` deals them out: whole, the largest first, each to the
    device that has least.
    """
    layers, letters = min(letters["L"], MANY), letters | {"L": 1}
    sizes = []
    for product, number in DATA["parameters"][kind].items():
        number *= layers if "L" in product.split() else 1
        sizes += [value(product, letters)] * number
    loads = [(0, device) for device in range(letters["k"])]
    for size in sorted(sizes, reverse=True):
        load, device = loads[0]
        heapreplace(loads, (load + size, device))
    return next(load for load, device in loads if device == 0) / sum(sizes)


def fit_on(size: float, card: str) -> OnCard:
    """Whether a training with this peak, in bytes, fits on a card of ``cards.CARDS``."""
    return on_card(size * LEAST, size * HELD, card)
