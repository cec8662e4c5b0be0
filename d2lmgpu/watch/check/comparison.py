"""The run with one process beside that with k: had they the same rows, and did they do the same?"""

import numpy as np

from d2lmgpu.watch.check import rows
from d2lmgpu.watch.check.evidence import EXACT

SAME = {True: 1e-6, False: 1e-2}  # double or not: updates that are this near, relative to their way


class Comparison:
    """``many`` and ``single``: the ``Evidence`` of both runs; one process was taught (``teacher``).

    steps: how many updates began with the same weights. difference: between those updates,
    relative to the way that they have gone, None if nothing moved. near: whether that is
    rounding. same_rows: whether the same rows went into the net in each; common of total.
    forced: whether the one process may count itself as several, see ``single_process``.
    """

    def __init__(self, many, single):
        self.many, self.single = many, single
        self.steps = min(many.steps, single.steps, single.first["taught"])
        self.own_lr, self.forced = single.first["own_lr"], single.first["forced"]
        own_rows = single.rows(0)
        self.own_rows = own_rows and own_rows * single.first["share"]
        self.difference = self._difference()
        self.near = self.difference is not None and self.difference < SAME[many.double]
        self.same_rows, self.common, self.total = self._rows()

    @property
    def compared(self) -> bool:
        """Whether it can be told if both train alike: updates that agree had the same rows."""
        differs = self.same_rows and self.difference is not None and not self.forced
        return self.near or (differs and not self.fixed)

    @property
    def fixed(self) -> bool:
        """Whether the loss is divided by a number that stays, as the rows of one rank's batch.

        Then that of a rank is a mean, which is right, and with all rows it is k times one.
        """
        wanted = ((self.many, 1), (self.single, self.many.world))
        return self.steps > 0 and all(
            passed["scale"] is not None and abs(passed["scale"] / scale - 1) < EXACT
            for evidence, scale in wanted
            for passes in evidence.passes(0)
            for passed in passes
        )

    def _difference(self):
        single = self.single
        if self.steps > 1:
            apart = sum(single.first["apart"][: self.steps - 1])
            moved = sum(single.first["moved"][: self.steps - 1])
            return (apart / moved) ** 0.5 if moved else None
        first, start = single.every("after", 0)[0], single.every("before", 0)[0]
        moved = np.linalg.norm(first - start)
        apart = np.linalg.norm(self.many.every("after", 0)[0] - first)
        return float(apart / moved) if moved else None

    def _rows(self):
        every = [rank["inputs"] for rank in (*self.many.ranks, self.single.first)]
        updates = [rows.same(ranks, own) for *ranks, own in zip(*every)][: self.steps]
        common, total = (sum(update[i] for update in updates) for i in (1, 2))
        return bool(updates) and all(same for same, *_ in updates), common, total

    def gradients(self, t) -> tuple:
        """How update t's gradients are made of the ranks' own: (of all, of one, left over).

        The first is what each rank's own gradient was used with, the second what one device with
        the same rows uses it with.
        """
        own = [*self.many.own(t)]
        used, left = self.many.fit(t, self.many.used(t)[0], own)
        right, more = self.many.fit(t, self.single.used(t)[0], own)
        return used, right, max(left, more)
