"""What the benchmarks share: a clock inside the loop, pairs, and medians."""

import statistics
import time
from itertools import islice

# of LeNet: W1, b1, … W4, b4
SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
WARMUP, BATCHES, PAIRS = 3, 24, 5


class Timed:
    """The first batches of ``data_iter``; samples a second of the loop that consumes them.

    The clock starts when the warm-up batches are done and stops when the last batch is, so the
    loader and the loop count, starting the loader's workers does not. ``len`` is that of
    ``data_iter``: D2L's loop draws its curve five times in so many batches, and that belongs to it.
    """

    def __init__(self, data_iter, synchronize, batches=BATCHES):
        self.data_iter, self.synchronize, self.batches = data_iter, synchronize, batches

    def __len__(self):
        return len(self.data_iter)

    def __iter__(self):
        samples = 0
        for i, (X, y) in enumerate(islice(self.data_iter, WARMUP + self.batches)):
            if i == WARMUP:
                self.synchronize()
                start = time.perf_counter()
            if i >= WARMUP:
                samples += len(y)
            yield X, y
        self.synchronize()
        self.rate = samples / (time.perf_counter() - start)


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
