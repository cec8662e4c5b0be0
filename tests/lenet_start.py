"""LeNet's initial weights (He start) and batches in NumPy, the same for both frameworks."""

import numpy as np

SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
FAN_IN = [9, None, 500, None, 800, None, 128, None]


def start(dtype, seed=0):
    rng = np.random.RandomState(seed)
    return [
        (rng.randn(*shape) * np.sqrt(2 / fan_in)).astype(dtype)
        if fan_in
        else np.zeros(shape, dtype)
        for shape, fan_in in zip(SHAPES, FAN_IN)
    ]


def random_batch(n, dtype, seed):
    rng = np.random.RandomState(seed)
    return rng.rand(n, 1, 28, 28).astype(dtype), rng.randint(10, size=n)
