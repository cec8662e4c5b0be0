"""What the benchmarks share: a clock inside the loop, pairs, and medians."""

import statistics
import time
from itertools import islice

# of LeNet: W1, b1, … W4, b4
SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
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


def pairs(first, second, ceiling=None):
    """Run ``first`` and ``second``, which return samples/s, by turns.

    Returns the median of each, the median of the ratios second/first, and the ratios; with
    ``ceiling``, which takes its turn too, also the median of ceiling/first.
    """
    rates = [(first(), second(), ceiling() if ceiling else 0) for _ in range(PAIRS)]
    ratios = [b / a for a, b, _ in rates]
    result = {
        "first": statistics.median(a for a, _, _ in rates),
        "second": statistics.median(b for _, b, _ in rates),
        "ratio": statistics.median(ratios),
        "ratios": [round(r, 3) for r in ratios],
    }
    if ceiling:
        result["ceiling"] = statistics.median(c / a for a, _, c in rates)
    return result
