"""What each rank gets from a collective, in NumPy and without a plan: the oracle."""

import numpy as np


def _parts(k, n):
    return [slice(i * n // k, (i + 1) * n // k) for i in range(k)]


def expected(name, given):
    """What each rank gets, from what each holds: in NumPy, without a plan."""
    k, n = given.shape
    total, own = given.sum(axis=0), _parts(k, n)
    nothing = given[:0].ravel()
    return {
        "broadcast": lambda: [given[0]] * k,
        "reduce": lambda: [total] + [nothing] * (k - 1),
        "all_reduce": lambda: [total] * k,
        "all_gather": lambda: [np.concatenate([given[i, own[i]] for i in range(k)])] * k,
        "reduce_scatter": lambda: [total[part] for part in own],
        "all_to_all": lambda: [
            np.concatenate([given[i, own[j]] for i in range(k)]) for j in range(k)
        ],
        "send": lambda: [given[0]] * min(k, 2) + [nothing] * (k - 2),
        "barrier": lambda: [np.concatenate([given[i, own[i]] for i in range(k)])] * k,
    }[name]()
