"""Least squares of the relative error, with nothing below 0: times are sums of positive parts."""

import numpy as np

from d2lmgpu.costmodel import CostError


def fit_factors(terms, seconds) -> np.ndarray:
    """The factors, none below 0, with which ``terms @ factors`` comes closest to ``seconds``.

    terms: (measurements, factors). seconds: (measurements,), each above 0. Lawson and Hanson's
    method (1974), as SciPy has it.
    """
    from scipy.optimize import nnls  # half a second to import: not before it is needed

    return nnls(terms / seconds[:, None], np.ones(len(seconds)))[0]


def fit_line(xs, seconds) -> tuple[float, float, float]:
    """(a, b, error) of seconds ≈ a + b·x with a ≥ 0 and b > 0; error is the largest relative one.

    Raises CostError unless there are two distinct xs from 0 up and a time above 0 for each.
    """
    try:
        x, y = np.asarray(xs, float), np.asarray(seconds, float)
        good = x.ndim == 1 and x.shape == y.shape and len(set(x)) > 1
        good = good and bool(np.isfinite([x, y]).all() and (x >= 0).all() and (y > 0).all())
    except (TypeError, ValueError):
        good = False
    if not good:
        raise CostError(
            f"No line through x = {xs!r} and seconds = {seconds!r}: give two x from 0 up, or more, "
            "and a time above 0 for each."
        )
    terms = np.column_stack([np.ones_like(x), x])
    a, b = fit_factors(terms, y)
    if b == 0:  # times that fall: of the lines that rise, the one through 0 comes closest
        a, (b,) = 0.0, fit_factors(terms[:, 1:], y)
    return float(a), float(b), float(np.max(np.abs((a + b * x) / y - 1)))
