"""An MLP that is cut over ranks, as a plan: what each rank computes, holds, and what is summed.

It is Y = GELU(X A) B with A in columns and B in rows, forward and back (Shoeybi et al., 2019). A
step reads arrays that the ranks hold and makes another one. How the ranks hold it is its placement:

- "whole": all ranks have all of it;
- "columns", "rows": each rank has a part, the first one on rank 0;
- "term": each rank has as many numbers as there are, and they have to be added up.
"""

from math import erf, exp, pi
from typing import NamedTuple

import numpy as np

PLACEMENTS = ("whole", "columns", "rows", "term")


class Step(NamedTuple):
    """What all ranks do at once.

    ``does`` is a key of ``COMPUTES``, or "f" or "g" for a sum over the ranks; ``of`` are the arrays
    that it reads, ``makes`` the one that it makes, and ``placement`` how the ranks hold that.
    """

    does: str
    of: tuple
    makes: str
    placement: str

    @property
    def is_sum(self) -> bool:
        """Whether it is an allreduce."""
        return self.does in ("f", "g")


START = {"X": "whole", "A": "columns", "B": "rows"}  # dY, "whole", comes from what follows
FORWARD = (
    Step("X A", ("X", "A"), "H", "columns"),
    Step("GELU(H)", ("H",), "Z", "columns"),
    Step("Z B", ("Z", "B"), "Y", "term"),
    Step("g", ("Y",), "Y", "whole"),
)
BACKWARD = (
    Step("Zᵀ dY", ("Z", "dY"), "dB", "rows"),
    Step("dY Bᵀ GELU'(H)", ("dY", "B", "H"), "dH", "columns"),
    Step("Xᵀ dH", ("X", "dH"), "dA", "columns"),
    Step("dH Aᵀ", ("dH", "A"), "dX", "term"),
    Step("f", ("dX",), "dX", "whole"),
)


def gelu(h) -> np.ndarray:
    """GELU of each number."""
    return h * _normal(h)


def gelu_slope(h) -> np.ndarray:
    """Its derivative."""
    return _normal(h) + h * np.vectorize(lambda x: exp(-x * x / 2) / (2 * pi) ** 0.5)(h)


def _normal(h):
    return np.vectorize(lambda x: (1 + erf(x / 2**0.5)) / 2)(h)


COMPUTES = {
    "X A": lambda X, A: X @ A,
    "GELU(H)": gelu,
    "Z B": lambda Z, B: Z @ B,
    "Zᵀ dY": lambda Z, dY: Z.T @ dY,
    "dY Bᵀ GELU'(H)": lambda dY, B, H: dY @ B.T * gelu_slope(H),
    "Xᵀ dH": lambda X, dH: X.T @ dH,
    "dH Aᵀ": lambda dH, A: dH @ A.T,
}


def part(placement, shape, k, rank) -> tuple:
    """What a rank holds of an array: (rows, columns), a slice each; of a term all of it."""
    rows, columns = (slice(0, size) for size in shape)
    if placement == "columns":
        columns = _part(shape[1], k, rank)
    elif placement == "rows":
        rows = _part(shape[0], k, rank)
    return rows, columns


def _part(size, k, rank):
    if size % k:
        raise ValueError(f"{size} cannot be cut into {k} equal parts.")
    return slice(rank * size // k, (rank + 1) * size // k)


def execute(X, A, B, dY, k) -> list[tuple[None, dict[str, list]]]:
    """Run the plan on k ranks, an array of NumPy each.

    Parameters
    ----------
    X : numpy.ndarray, (tokens, width)
    A : numpy.ndarray, (width, hidden)
    B : numpy.ndarray, (hidden, width)
    dY : numpy.ndarray, (tokens, width)
        The gradient of the output.
    k : int
        How many ranks; a divisor of ``hidden``.

    Returns
    -------
    list of (Step or None, dict)
        Before and after each step what each rank holds: name -> list of k arrays.

    Raises
    ------
    ValueError
        Where k does not divide ``hidden``.
    """
    whole = {"X": X, "A": A, "B": B}
    held = {
        name: [whole[name][part(placement, whole[name].shape, k, rank)] for rank in range(k)]
        for name, placement in START.items()
    }
    moments = [(None, dict(held))]
    for step in (*FORWARD, *BACKWARD):
        if step is BACKWARD[0]:
            held["dY"] = [dY] * k
        made = [_made(step, [held[name][rank] for name in step.of]) for rank in range(k)]
        held[step.makes] = [sum(made)] * k if step.is_sum else made
        moments.append((step, dict(held)))
    return moments


def _made(step, arrays):
    return arrays[0] if step.is_sum else COMPUTES[step.does](*arrays)
