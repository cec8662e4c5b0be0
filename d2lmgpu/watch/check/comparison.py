"""The run with one process beside that with k: had they the same rows, and did they do the same?"""

import numpy as np

from d2lmgpu.watch.check import rows
from d2lmgpu.watch.check.evidence import EXACT

SAME = {True: 1e-6, False: 1e-2}  # double or not: updates that are this near, relative to their way


class Comparison:
    """``many`` and ``one``: the ``Evidence`` of both runs; one process was taught (``teacher``).

    steps: how many updates began with the same weights. difference: between those updates,
    relative to the way that they have gone, None if nothing moved. near: whether that is
    rounding. same_rows: whether the same rows went into the net in each; common of total.
    forced: whether the one process may count itself as several, see ``alone``.
    """

    def __init__(self, many, one):
        self.many, self.one = many, one
        self.steps = min(many.steps, one.steps, one.first["taught"])
        self.own_lr, self.forced = one.first["own_lr"], one.first["forced"]
        own_rows = one.rows(0)
        self.own_rows = own_rows and own_rows * one.first["share"]
        self.difference = self._difference()
        self.near = self.difference is not None and self.difference < SAME[many.double]
        self.same_rows, self.common, self.total = self._rows()

    @property
    def compared(self):
        """Whether it can be told if both train alike: updates that agree had the same rows."""
        differs = self.same_rows and self.difference is not None and not self.forced
        return self.near or (differs and not self.fixed)

    @property
    def fixed(self):
        """Whether the loss is divided by a number that stays, as the rows of one rank's batch.

        Then that of a rank is a mean, which is right, and with all rows it is k times one.
        """
        wanted = ((self.many, 1), (self.one, self.many.world))
        return self.steps > 0 and all(
            one["scale"] is not None and abs(one["scale"] / scale - 1) < EXACT
            for evidence, scale in wanted
            for passes in evidence.passes(0)
            for one in passes
        )

    def _difference(self):
        apart, way = (sum(self.one.first[name][: self.steps - 1]) for name in ("apart", "way"))
        if self.steps > 1:
            return (apart / way) ** 0.5 if way else None
        first, start = self.one.every("after", 0)[0], self.one.every("before", 0)[0]
        moved = np.linalg.norm(first - start)
        apart = np.linalg.norm(self.many.every("after", 0)[0] - first)
        return float(apart / moved) if moved else None

    def _rows(self):
        every = [rank["inputs"] for rank in (*self.many.ranks, self.one.first)]
        seen = [rows.same(ranks, one) for *ranks, one in zip(*every)][: self.steps]
        common, total = (sum(update[i] for update in seen) for i in (1, 2))
        return bool(seen) and all(same for same, *_ in seen), common, total

    def gradients(self, t):
        """How update t's gradients are made of the ranks' own: (of all, of one, left over).

        The first is what each rank's own gradient was used with, the second what one device with
        the same rows uses it with.
        """
        own = [*self.many.own(t)]
        used, left = self.many.fit(t, self.many.used(t)[0], own)
        right, more = self.many.fit(t, self.one.used(t)[0], own)
        return used, right, max(left, more)
