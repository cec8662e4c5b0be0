"""Count what can be the peak of well-known networks: ``python -m benchmarks.peak_sums``.

A training step of one structure takes and gives back the same storages whatever its sizes are. So a
few runs of ``fits``'s own count, on small numbers, say of each storage which product of the numbers
it is, and what is in use at each moment is a sum of such products. Kept are those sums that are the
largest for some numbers. Of language models three depths are counted, for what each layer adds.

Writes ``d2lmgpu/memory/peaks.json``, and ``tests/memory/peaks.csv``: other, larger sizes with what
``fits`` says of them.
"""

import csv
import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer

from benchmarks.peak_networks import (
    KINDS,
    OTHERS,
    Config,
    LanguageModel,
    of_each_token,
    tokens,
    units,
)
from d2lmgpu.memory.fit import Fit
from d2lmgpu.memory.peaks import NUMBERS
from d2lmgpu.torch.memory import fits
from d2lmgpu.torch.memory.follow import follow
from d2lmgpu.torch.memory.group import group

ROOT = Path(__file__).resolve().parents[1]
PRECISIONS = {"float32": 4, "amp bfloat16": 4, "bfloat16": 2}  # name -> bytes of a gradient
OPTIMIZERS = {"SGD": (torch.optim.SGD, {"lr": 0.1}), "AdamW": (torch.optim.AdamW, {})}
# Counted is AdamW, and what it makes has the letter z: 0 for SGD, which makes nothing, and with
# ZeRO-1, which else is DDP, the share of the parameters that a device's optimizer has.
COUNTING = "AdamW"
STRATEGIES = ("DDP", "ZeRO-1", "ZeRO-2", "FSDP")
COUNTED = ("DDP", "ZeRO-2", "FSDP")  # ZeRO-1 has the sums of DDP
RESHARDED = {"ZeRO-2": False, "FSDP": None}  # of a unit after the forward pass; None: PyTorch's way
# Each storage is one of these products times a number of bytes, or is cut by k, or is what FSDP
# gathers at once: all parameters of a unit.
WEIGHTS = ["d", "f", "V", "a g", "d d", "d f", "d a g", "V d", "T d", "1"]
OTHER_PRODUCTS = ["n", "T", "T a", *(f"n T{rest}" for rest in ("", " d", " f", " a g", " V", " h"))]
DEPTHS = (2, 3, 5)
TOLERANCE = 0.002  # of a sum that is not the largest, but hardly less


def value(name, letters) -> int:
    return prod(letters.get(letter, 1) for letter in name.split())


def sizes_of_runs(make, runs, setting) -> tuple[list | None, np.ndarray, set]:
    """(events of one run, the sizes of each event in all of them, what the optimizer makes).

    ``make``: what ``follow`` gets of a run's letters. What is given back at once has no order.
    """
    columns, structure = [], None
    kind, options = OPTIMIZERS[COUNTING]
    for letters in runs:
        gc.collect()
        net, batch, loss = make(letters)
        k = letters["k"]
        with group(k):
            optimizer = partial(kind, **options)
            timeline, _ = follow(net, batch, loss, optimizer, letters["n"], setting[0], k)
        numbers, events = {}, []
        for taken, together in groupby(timeline.events, key=lambda event: event.taken):
            several = [
                (numbers.setdefault(e.number, len(numbers)), taken, e.size) for e in together
            ]
            events += several if taken else sorted(several)
        events_of_run = [event[:2] for event in events]
        assert structure is None or events_of_run == structure, "a step of another structure"
        structure = events_of_run
        columns.append([size for *_, size in events])
    updates = [timeline.events[i] for update in timeline.updates for i in update]
    own = {numbers[event.number] for event in updates if event.taken}
    return structure, np.array(columns, float).T, own


def as_in(strategy, make) -> Callable:
    """``make``, sharded if that is the strategy."""
    if strategy not in RESHARDED:
        return make

    def made():
        from torch.distributed.fsdp import fully_shard

        shard = partial(fully_shard, reshard_after_forward=RESHARDED[strategy])
        net = make()
        for unit in units(net):
            shard(unit)
        return shard(net)

    return made


def moments(make, runs, setting, candidates) -> list:
    """What is in use after each event: {product: bytes} each."""
    events, columns, own = sizes_of_runs(make, runs, setting)
    names = list(candidates)
    values = np.array(
        [
            [sum(c * value(p, run) for p, c in candidates[name].items()) for name in names]
            for run in runs
        ]
    )
    known, total, sums = {}, Counter(), []
    for (number, taken), sizes in zip(events, columns):
        if number not in known:
            ratios = sizes / values.T
            constant = np.ptp(ratios, axis=1) < 1e-9 * ratios[:, 0]
            if sizes.any():
                assert constant.any(), f"no product is {sizes}"
                index = int(constant.argmax())
                terms = candidates[names[index]]
                share = "z " if number in own else ""
                known[number] = {share + p: c * ratios[index, 0] for p, c in terms.items()}
            else:
                known[number] = {}
        for p, size in known[number].items():
            total[p] += size if taken else -size
        sums.append({p: size for p, size in total.items() if abs(size) > 1e-6})
    return sums


def largest(sums, samples) -> list:
    """Few of ``sums`` of which one is, nearly, the largest for each of ``samples``."""
    products = sorted({p for terms in sums for p in terms})
    values = np.array([[value(p, letters) for p in products] for letters in samples])
    sizes = np.array([[terms.get(p, 0) for p in products] for terms in sums]) @ values.T
    good = sizes >= (1 - TOLERANCE) * sizes.max(axis=0)
    kept, unsettled = [], np.ones(len(samples), bool)
    while unsettled.any():
        best = int((good & unsettled).sum(axis=1).argmax())
        kept.append(best)
        unsettled &= ~good[best]
    return [sums[i] for i in sorted(kept)]


def undominated(sums, products) -> np.ndarray:
    """The rows of ``sums`` than which no other has all products as large."""
    rows = np.unique([[terms.get(p, 0) for p in products] for terms in sums], axis=0)
    return np.array([row for row in rows if ((rows >= row).all(axis=1)).sum() == 1])


def by_depth(sums_by_depth) -> list:
    """The sums of any depth L, from those of three depths: each product grows evenly with L.

    The depths are such that only a moment in the same place, from the first or the last layer on,
    is in line.
    """
    few, more, most = DEPTHS
    products = sorted({p for sums in sums_by_depth.values() for terms in sums for p in terms})
    rows = {depth: undominated(sums, products) for depth, sums in sums_by_depth.items()}
    there = {tuple(row.round(3)) for row in rows[most]}
    lines = []
    for row in rows[few]:
        for each in (rows[more] - row) / (more - few):
            if (each > -1e-6).all() and tuple((row + (most - few) * each).round(3)) in there:
                lines.append(
                    dict(zip(products, row - few * each))
                    | {f"L {p}": size for p, size in zip(products, each)}
                )
    return lines


def pieces_of(parameters, strategy) -> dict[str, dict[str, int]]:
    """Candidates for a storage: products, cut by k or not, and all parameters of a unit."""
    candidates = {name: {name: 1} for name in [*WEIGHTS, *OTHER_PRODUCTS]}
    candidates |= {f"unit {i}": unit for i, unit in enumerate(parameters)}
    if strategy != "DDP":
        candidates |= {
            f"{name} cut": {f"{p} /k": c for p, c in candidates[name].items()}
            for name in [*WEIGHTS, *(f"unit {i}" for i in range(len(parameters)))]
        }
    return candidates


LLAMA = {"d d": 2, "d a g": 2, "d f": 3, "d": 2}, {"V d": 2, "d": 1}
GPT2 = {"d d": 2, "d a g": 2, "d f": 2, "d": 7, "a g": 2, "f": 1}, {"V d": 1, "T d": 1, "d": 2}
BERT = GPT2[0], {"V d": 1, "T d": 1, "d": 5, "d d": 1, "V": 1}
# How many there are of each size: of a block, and of the rest.
PARAMETERS = {"Llama": LLAMA, "GPT-2": GPT2, "BERT": BERT}


def small(kind, layers, seed, strategy) -> dict:
    """Numbers of a small language model; each size divides by the devices."""
    rng = np.random.default_rng(seed)
    h, a = int(rng.choice([4, 8])), 4 * int(rng.integers(4, 16))
    g = int(rng.choice([2, 4])) if kind == "Llama" else h
    return {
        "L": layers,
        "n": int(rng.integers(2, 12)),
        "T": 8 * int(rng.integers(3, 40)),
        "h": h,
        "a": a,
        "g": g,
        "d": h * a,
        "f": 16 * int(rng.integers(10, 36)),
        "V": 8 * int(rng.integers(20, 90)),
        "k": 1 if strategy == "DDP" else (2, 8)[seed],
    }


SHARES = (1, 1, 0, 0.5, 0.3, 0.1)  # of the parameters, that a device's optimizer has


def realistic(kind, strategy, number=4000) -> list:
    """Numbers as people have them."""
    rng, samples = np.random.default_rng(1), []
    for _ in range(number):
        h, a = int(rng.choice([4, 8, 12, 16, 32, 64])), int(rng.choice([64, 128]))
        samples.append(
            {
                "L": int(rng.integers(2, 100)),
                "n": int(2 ** rng.uniform(0, 9)),
                "T": int(2 ** rng.uniform(5, 14)),
                "h": h,
                "a": a,
                "g": max(1, h // int(rng.choice([1, 2, 4, 8]))) if kind == "Llama" else h,
                "d": h * a,
                "f": int(h * a * rng.uniform(2, 5)),
                "V": int(2 ** rng.uniform(9, 18)),
                "k": 1 if strategy == "DDP" else int(rng.choice([2, 4, 8, 16, 64, 512])),
            }
        )
    for letters in samples:
        letters["/k"] = 1 / letters["k"]
        letters["z"] = float(rng.choice(SHARES))
    return samples


def with_cut(runs) -> list:
    return [letters | {"/k": 1 / letters["k"]} for letters in runs]


def config_of(letters) -> Config:
    return Config(*(letters[letter] for letter in "LdhgfVT"))


def language_model(kind, precision, strategy) -> list:
    """The sums of a kind of language model, with L for what each layer adds."""

    def make(letters):
        config = config_of(letters)
        made = as_in(strategy, lambda: LanguageModel(config, kind))
        return made, tokens(config), of_each_token

    candidates, sums_by_depth = pieces_of(PARAMETERS[kind], strategy), {}
    for layers in DEPTHS:
        runs = with_cut([small(kind, layers, seed, strategy) for seed in range(2)])
        sums_by_depth[layers] = moments(make, runs, (precision, strategy), candidates)
    sums = largest(by_depth(sums_by_depth), realistic(kind, strategy))
    return with_buckets(sums, sizes_of_parameters(kind), precision, strategy)


def sizes_of_parameters(kind) -> Counter[str] | dict[str, int]:
    """How many there are of each size; a product with L is of each layer."""
    if kind in OTHERS:
        return Counter(str(p.numel()) for p in OTHERS[kind][0]().parameters())
    block, rest = PARAMETERS[kind]
    return {f"L {p}": c for p, c in block.items()} | rest


def with_buckets(sums, parameters, precision, strategy) -> list:
    """DDP's, if there is another device: letter b."""
    if strategy == "DDP":
        size = PRECISIONS[precision]
        sums = [terms | {f"b {p}": size * c for p, c in parameters.items()} for terms in sums]
    return sums


def other(name, precision, strategy) -> list:
    """The sums of a network of one size: what does not depend on the batch, and what does."""
    make, batch, loss = OTHERS[name]
    ddp = strategy == "DDP"
    runs = [{"n": 2, "k": 2}, {"n": 3, "k": 2}, {"n": 2, "k": 4}]
    if ddp:
        runs = [{"n": 2, "k": 1}, {"n": 3, "k": 1}]
    events, columns, own = sizes_of_runs(
        lambda letters: (as_in(strategy, make), batch, loss), runs, (precision, strategy)
    )
    signs = np.array([1 if taken else -1 for _, taken in events])[:, None]
    totals = (signs * columns).cumsum(axis=0)
    of_optimizer = np.array([number in own for number, _ in events])[:, None]
    shares = (signs * columns * of_optimizer).cumsum(axis=0)
    sums = [
        straight(total - share, ddp)
        | {f"z {name}": size for name, size in straight(share, ddp).items()}
        for total, share in zip(totals, shares)
    ]
    samples = [
        {"n": 2**n, "/k": 1 / k, "z": z}
        for n in np.arange(0, 12, 0.25)
        for k in ((1,) if ddp else (2, 4, 8, 16, 64))
        for z in SHARES
    ]
    parameters = {"1": sum(p.numel() for p in make().parameters())}
    return with_buckets(largest(sums, samples), parameters, precision, strategy)


def straight(sizes, ddp) -> dict:
    """The line through the sizes of the runs of ``other``, in the batch and in 1 / devices."""
    each = sizes[1] - sizes[0]
    cut = 0 if ddp else 4 * (sizes[0] - sizes[2])
    return {"n": each, "/k": cut, "1": sizes[0] - 2 * each - cut / 2}


def rounded(sums) -> list[dict]:
    return [{p: round(size, 6) for p, size in terms.items() if abs(size) > 1e-6} for terms in sums]


def count() -> dict:
    settings = [(precision, strategy) for precision in PRECISIONS for strategy in COUNTED]
    sums = {}
    gc.disable()  # what it gives back would come at moments of its own
    for name in (*KINDS, *OTHERS):
        counting = language_model if name in KINDS else other
        sums[name] = {}
        for setting in settings:
            counted = sums[name][", ".join(setting)] = rounded(counting(name, *setting))
            print(name, *setting, len(counted), "sums", flush=True)
    gc.enable()
    return sums


LLAMA_8B, LLAMA_1B = (32, 4096, 32, 8, 14336, 128256), (16, 2048, 32, 8, 8192, 128256)
SMALL_GPT2, MEDIUM_GPT2 = (12, 768, 12, 12, 3072, 50257), (24, 1024, 16, 16, 4096, 50257)
BASE_BERT, LARGE_BERT = (12, 768, 12, 12, 3072, 30522), (24, 1024, 16, 16, 4096, 30522)
VECTORS = [  # of sizes that are not those counted: what they are, then how they are trained
    ("GPT-2", (*SMALL_GPT2, 1024), "float32", "AdamW", "DDP", 1, 8),
    ("GPT-2", (*SMALL_GPT2, 1024), "amp bfloat16", "AdamW", "DDP", 4, 16),
    ("GPT-2", (*SMALL_GPT2, 256), "float32", "SGD", "DDP", 2, 1),
    ("GPT-2", (*MEDIUM_GPT2, 1024), "float32", "AdamW", "DDP", 1, 1),
    ("GPT-2", (*MEDIUM_GPT2, 512), "amp bfloat16", "SGD", "FSDP", 8, 4),
    ("GPT-2", (7, 640, 10, 10, 2000, 1000, 200), "amp bfloat16", "SGD", "DDP", 1, 3),
    ("BERT", (*BASE_BERT, 512), "float32", "AdamW", "DDP", 1, 16),
    ("BERT", (*BASE_BERT, 128), "amp bfloat16", "AdamW", "FSDP", 4, 64),
    ("BERT", (*LARGE_BERT, 384), "amp bfloat16", "SGD", "DDP", 8, 8),
    ("BERT", (4, 512, 8, 8, 2048, 30522, 128), "float32", "AdamW", "FSDP", 2, 1),
    ("Llama", (*LLAMA_8B, 8192), "amp bfloat16", "AdamW", "FSDP", 64, 1),
    ("Llama", (*LLAMA_8B, 2048), "float32", "SGD", "DDP", 1, 1),
    ("Llama", (*LLAMA_1B, 4096), "amp bfloat16", "AdamW", "DDP", 2, 2),
    ("Llama", (*LLAMA_1B, 4096), "float32", "AdamW", "FSDP", 16, 1),
    ("Llama", (6, 1024, 16, 2, 3584, 32000, 512), "float32", "AdamW", "DDP", 1, 4),
    ("ViT-B/16", (), "float32", "AdamW", "DDP", 1, 64),
    ("ViT-B/16", (), "amp bfloat16", "AdamW", "FSDP", 8, 100),
    ("ResNet-50", (), "float32", "SGD", "DDP", 1, 256),
    ("ResNet-50", (), "amp bfloat16", "AdamW", "DDP", 8, 64),
    ("ResNet-50", (), "float32", "AdamW", "FSDP", 4, 32),
    ("U-Net", (), "float32", "AdamW", "DDP", 1, 4),
    ("U-Net", (), "amp bfloat16", "SGD", "FSDP", 2, 1),
    ("GPT-2", (*SMALL_GPT2, 1024), "bfloat16", "AdamW", "DDP", 1, 8),
    ("GPT-2", (*MEDIUM_GPT2, 1024), "amp bfloat16", "AdamW", "ZeRO-1", 4, 4),
    ("GPT-2", (7, 640, 10, 10, 2000, 1000, 200), "bfloat16", "AdamW", "ZeRO-1", 4, 3),
    ("BERT", (*LARGE_BERT, 128), "float32", "SGD", "ZeRO-1", 2, 4),
    ("Llama", (*LLAMA_1B, 4096), "bfloat16", "SGD", "DDP", 2, 1),
    ("Llama", (*LLAMA_1B, 2048), "float32", "AdamW", "ZeRO-1", 8, 1),
    ("ViT-B/16", (), "bfloat16", "AdamW", "ZeRO-1", 8, 32),
    ("ResNet-50", (), "bfloat16", "SGD", "DDP", 1, 128),
    ("ResNet-50", (), "float32", "AdamW", "ZeRO-1", 16, 8),
    ("U-Net", (), "amp bfloat16", "AdamW", "ZeRO-1", 2, 1),
    ("GPT-2", (*MEDIUM_GPT2, 1024), "bfloat16", "AdamW", "FSDP", 8, 4),
    ("GPT-2", (7, 640, 10, 10, 2000, 1000, 200), "bfloat16", "SGD", "ZeRO-2", 2, 3),
    ("BERT", (*LARGE_BERT, 128), "float32", "AdamW", "ZeRO-2", 4, 8),
    ("BERT", (*BASE_BERT, 512), "bfloat16", "AdamW", "FSDP", 2, 16),
    ("Llama", (*LLAMA_8B, 4096), "bfloat16", "AdamW", "FSDP", 64, 1),
    ("Llama", (*LLAMA_1B, 4096), "amp bfloat16", "AdamW", "ZeRO-2", 8, 1),
    ("Llama", (*LLAMA_8B, 2048), "bfloat16", "AdamW", "ZeRO-2", 16, 1),
    ("ViT-B/16", (), "bfloat16", "AdamW", "FSDP", 8, 32),
    ("ResNet-50", (), "amp bfloat16", "SGD", "ZeRO-2", 4, 64),
    ("U-Net", (), "bfloat16", "AdamW", "ZeRO-2", 2, 2),
]


def fit_of(kind, numbers, precision, optimizer, strategy, devices, batch_size) -> Fit:
    """What ``fits`` says of such a training."""
    if kind in OTHERS:
        make, batch, loss = OTHERS[kind]
    else:
        config = Config(*numbers)
        make, batch, loss = lambda: LanguageModel(config, kind), tokens(config), of_each_token
    trainer, options = OPTIMIZERS[optimizer]
    if strategy == "ZeRO-1":
        trainer = partial(ZeroRedundancyOptimizer, optimizer_class=trainer)
    trainer = partial(trainer, **options)
    return fits(as_in(strategy, make), batch, loss, trainer, batch_size, precision, devices)


def vectors() -> Iterator[dict]:
    names = [*NUMBERS.values()][2:]  # of a language model
    for vector in VECTORS:
        kind, numbers, precision, optimizer, strategy, devices, batch_size = vector
        fit = fit_of(*vector)
        row = {"kind": kind, "precision": precision, "optimizer": optimizer, "strategy": strategy}
        row |= {"devices": devices, "batch_size": batch_size}
        row |= dict(zip(names, numbers or [""] * len(names)))
        yield row | {"peak": fit.peak, "least": fit.least, "reserved": fit.reserved}
        print(*vector, fit, flush=True)


def main() -> None:
    rows = [*vectors()]
    with open(ROOT / "tests/memory/peaks.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    large = [row for row in rows if row["peak"] > 1e9]  # smaller ones do not fill segments
    data = {
        "precisions": [*PRECISIONS],
        "optimizers": [*OPTIMIZERS],
        "strategies": STRATEGIES,
        # what the allocator needs at least, and what nine in ten hold, as multiples of the peak
        "least": round(min(row["least"] / row["peak"] for row in large), 3),
        "held": round(float(np.quantile([r["reserved"] / r["peak"] for r in large], 0.9)), 3),
        "parameters": {kind: sizes_of_parameters(kind) for kind in (*KINDS, *OTHERS)},
        "sums": count(),
    }
    text = json.dumps(data, separators=(",", ":")).replace("},", "},\n")
    (ROOT / "d2lmgpu/memory/peaks.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
