"""What the ranks saw, put together: NumPy arrays of the updates that all of them made.

Per update t and rank r there is the gradient that was used, and what autograd made on each rank.
If the loss is a mean, the gradient of one device with all rows is

    right(t) = sum over all backward passes of (rows / all rows) * own / scale

where ``scale`` is what the script multiplied its mean with, as far as it is known.
"""

import io
from functools import cached_property

import numpy as np

from d2lmgpu.watch.check.batches import EPOCH

EXACT = 1e-4  # a scale that is known is within this of a plain one


class Evidence:
    """Of a ``Watched`` with the observer of this room.

    ``ranks`` are its reports; ``steps`` the number of updates that all ranks made; ``eps`` the
    relative difference from which two gradients are not the same.
    """

    def __init__(self, watched):
        self.ranks, self.world = watched.reports, len(watched.reports)
        self.double = all(rank["double"] for rank in self.ranks)
        self.eps = 1e-7 if self.double else 1e-3
        files = [watched.files.get(f"kept-gradients-{r['rank']}") for r in self.ranks]
        archives = [np.load(io.BytesIO(file)) if file else {} for file in files]
        self.arrays = [{name: archive[name] for name in archive} for archive in archives]
        self.steps = min((len(rank["updates"]) for rank in self.ranks), default=0)
        self.sizes, self.names = self.ranks[0]["sizes"], self.ranks[0]["names"]
        self.shapes = self.ranks[0].get("shapes")
        self.first = self.ranks[0]
        self.grouped = any(rank["distributed"] for rank in self.ranks)

    @property
    def parted(self) -> bool:
        """Whether the optimizers hold other tensors than those that the backward passes reach.

        So it is where each rank updates its part of the weights, or copies of them. Then what an
        optimizer is given is no sum of what autograd has made for the same parameter.
        """
        return any(rank["sizes"] != self.sizes for rank in self.ranks) or all(
            not self.own(t).any() and self.every("used", t).any() for t in range(self.steps)
        )

    def line(self, *kinds) -> str | None:
        """The line of the first of these kinds that was seen, on any rank."""
        lines = (rank["lines"].get(kind) for kind in kinds for rank in self.ranks)
        return next((line for line in lines if line), None)

    def every(self, name, t) -> np.ndarray:
        """(ranks, entries): ``before``, ``after``, ``used`` or ``old`` of update t."""
        return np.stack([arrays[f"{name}-{t}"] for arrays in self.arrays])

    def used(self, t) -> np.ndarray:
        """(ranks, entries): gradients of update t; before a clip that came after the exchange."""
        unclipped = self.every("unclipped", t)
        clips = [rank["updates"][t]["clip"] for rank in self.ranks]
        exchanged = all(distance(gradient, unclipped[0]) < self.eps for gradient in unclipped)
        if exchanged or all(clip and clip["late"] for clip in clips):
            return unclipped
        return self.every("used", t)

    def passes(self, t) -> list:
        """[rank][backward pass]: rows, scale, batch of update t."""
        return [rank["updates"][t]["passes"] for rank in self.ranks]

    def own(self, t) -> np.ndarray:
        """[rank]: the sum of what autograd made in update t, (ranks, entries)."""
        zeros = np.zeros_like(self.arrays[0][f"used-{t}"])
        return np.stack(
            [
                sum((arrays[f"own-{t}-{b}"] for b in range(len(passes))), zeros)
                for arrays, passes in zip(self.arrays, self.passes(t))
            ]
        )

    def scale(self, t, rank, b) -> float:
        """What the loss of a pass was multiplied with: a plain number, or 1 where it is unknown."""
        scale, passes = self.passes(t)[rank][b]["scale"], self.passes(t)
        rows, every = passes[rank][b]["rows"], self.rows(t)
        plain = {1.0, 1 / len(passes[rank]), *(2.0**n for n in range(1, 25))}
        if rows and every:
            plain |= {rows / every, rows * self.world / every}
            rows_of_rank = sum(passed["rows"] for passed in passes[rank])
            plain |= {rows / rows_of_rank}
        if scale is None:
            return 1.0 / len(passes[rank])
        near = min(plain, key=lambda number: abs(number / scale - 1) if scale else 0)
        if scale and abs(near / scale - 1) < EXACT:
            return near
        return 1.0 / len(passes[rank])

    @property
    def scales_known(self) -> bool:
        """Whether every loss was one of PyTorch's."""
        every = (passes for t in range(self.steps) for passes in self.passes(t))
        return all(passed["scale"] is not None for passes in every for passed in passes)

    def rows(self, t) -> int | None:
        """Rows of update t on all ranks; None if they are not known."""
        counts = [passed["rows"] for passes in self.passes(t) for passed in passes]
        return None if not counts or None in counts else sum(counts)

    @property
    def updates_an_epoch(self) -> int | None:
        """Of one that is not cut short; None if that is not known."""
        batches = self.first["epoch"]
        return batches and self._updates(batches)

    def _updates(self, batches):
        """How many updates so many batches make."""
        return -(-batches // max(len(self.passes(0)[0]), 1))

    @property
    def ends_early(self) -> bool:
        """Whether a time limit came in the first epoch: what comes after it was not seen."""
        epoch = self._updates(min(self.first["epoch"] or EPOCH, EPOCH))
        by_time = any(rank["end"] in ("seconds", "wall") for rank in self.ranks)
        return by_time and self.steps <= epoch

    def weights(self, t) -> list:
        """[rank][pass]: with what the own gradients should be added."""
        passes, every = self.passes(t), self.rows(t)
        number = sum(len(of_rank) for of_rank in passes)
        return [
            [
                (passed["rows"] / every if every else 1 / number) / self.scale(t, r, b)
                for b, passed in enumerate(of_rank)
            ]
            for r, of_rank in enumerate(passes)
        ]

    def right(self, t) -> np.ndarray:
        """The gradient of one device with the rows of all."""
        total = np.zeros_like(self.arrays[0][f"used-{t}"])
        for arrays, weights in zip(self.arrays, self.weights(t)):
            for b, weight in enumerate(weights):
                total = total + weight * arrays[f"own-{t}-{b}"]
        return total

    @cached_property
    def errors(self) -> list[float]:
        """For each update, how far the used gradients are from the right one, relative to it."""
        return [
            max(distance(used, self.right(t)) for used in self.used(t)) for t in range(self.steps)
        ]

    def fit(self, t, used, columns) -> tuple:
        """How ``used`` is made of ``columns``: coefficients, and what is left over, relative."""
        matrix = np.stack(columns, 1)
        coefficients = np.linalg.lstsq(matrix, used, rcond=1e-9)[0]
        return coefficients, distance(matrix @ coefficients, used)

    def parts(self, vector) -> list[np.ndarray]:
        """A vector of all parameters, parameter by parameter."""
        return np.split(vector, np.cumsum(self.sizes)[:-1])

    def apart(self, name, t) -> np.ndarray:
        """For each parameter, how far the ranks are apart."""
        every = self.used(t) if name == "used" else self.every(name, t)
        ranks = [self.parts(vector) for vector in every]
        return np.array(
            [
                max(distance(other[i], ranks[0][i]) for other in ranks)
                for i in range(len(self.sizes))
            ]
        )


def distance(a, b) -> float:
    """The length of a - b, relative to the longer one; 0 for two zeros."""
    size = max(np.linalg.norm(a), np.linalg.norm(b))
    return float(np.linalg.norm(a - b) / size) if size else 0.0
