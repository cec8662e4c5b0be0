"""What the benchmarks share: a clock inside the loop, pairs, medians, a process for each."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from statistics import median

WARMUP, BATCHES, PAIRS = 3, 24, 5
SHORT_TURNS = {"batches": 3, "turns": 20}


class Timed:
    """The first batches of ``data_iter``; samples a second of the loop that consumes them.

    That is the best of ``turns`` of ``batches`` each. The cores of a rented machine are slower for
    seconds, two of them more often than one, while others use the host: of short turns the best is
    the one that was disturbed least, as for Python's ``timeit``.

    The clock starts when the warm-up batches are done, and a turn ends when its last batch is. So
    the loader and the loop count, starting the loader's workers does not. ``len`` is that of
    ``data_iter``: D2L's loop draws its curve five times in so many batches, and that belongs to it.
    """

    def __init__(self, data_iter, synchronize, batches=BATCHES, turns=1):
        self.data_iter, self.synchronize = data_iter, synchronize
        self.batches, self.turns = batches, turns

    def __len__(self):
        return len(self.data_iter)

    def __iter__(self):
        data, rates = iter(self.data_iter), []
        yield from islice(data, WARMUP)
        for _ in range(self.turns):
            self.synchronize()
            samples, start = 0, time.perf_counter()
            for X, y in islice(data, self.batches):
                yield X, y
                samples += len(y)
            self.synchronize()
            rates.append(samples / (time.perf_counter() - start))
        self.rate = max(rates)


def pairs(first, second, ceiling=None) -> dict:
    """Run ``first`` and ``second``, which return samples/s, by turns.

    Returns the median of each, the median of the ratios second/first, and the ratios; with
    ``ceiling``, which takes its turn too, also the median of ceiling/first.
    """
    rates = [(first(), second(), ceiling() if ceiling else 0) for _ in range(PAIRS)]
    ratios = [b / a for a, b, _ in rates]
    result = {
        "first": median(a for a, _, _ in rates),
        "second": median(b for _, b, _ in rates),
        "ratio": median(ratios),
        "ratios": [round(r, 3) for r in ratios],
    }
    if ceiling:
        result["ceiling"] = median(c / a for a, _, c in rates)
    return result


def verdict(name, values, limit, form=".2f", unit="") -> bool:
    """Print the median of ``values`` with their spread; whether it is as close to 0 as allowed."""
    good = abs(median(values)) <= limit
    middle, least, most = (format(of(values), form) for of in (median, min, max))
    print(
        f"{name} {middle}{unit} ({least} to {most}; at most {limit:g}) "
        f"{'ok' if good else 'TOO MUCH'}",
        flush=True,
    )
    return good


def installed(framework) -> bool:
    """Whether it is; if not, say so."""
    present = importlib.util.find_spec(framework) is not None
    if not present:
        print(f"{framework}: left out, it is not installed")
    return present


def result_of(module, *arguments, **settings) -> object:
    """What ``python -m module arguments FILE`` writes to the file as JSON, under ``settings``."""
    environment = os.environ | {"MPLBACKEND": "agg"} | settings
    with tempfile.NamedTemporaryFile("r") as out:
        command = [sys.executable, "-m", module, *arguments, out.name]
        subprocess.run(command, check=True, env=environment)
        return json.load(out)
