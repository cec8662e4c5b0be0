"""LeNet's initial weights (He start) and batches in NumPy, the same for both frameworks."""

import numpy as np

from d2lmgpu.backend.arguments import LENET_SHAPES

LENET_FAN_IN = (9, None, 500, None, 800, None, 128, None)  # inputs that a weight's unit sums over


def start(dtype, seed=0):
    rng = np.random.RandomState(seed)
    return [
        (rng.randn(*shape) * np.sqrt(2 / fan_in)).astype(dtype)
        if fan_in
        else np.zeros(shape, dtype)
        for shape, fan_in in zip(LENET_SHAPES, LENET_FAN_IN)
    ]


def random_batch(n, dtype, seed):
    rng = np.random.RandomState(seed)
    return rng.rand(n, 1, 28, 28).astype(dtype), rng.randint(10, size=n)
