"""A network that is cut over ranks beside the whole one: tensor parallelism, by hand or by plan.

All ranks get the same rows, and each holds parts of the parameters. Nobody tells which parts: it is
read off the weights before the first update. With one process the script makes whole parameters;
a part is what it is of exactly if its numbers are a slice of one, along one dimension, and the
parts of all ranks are all of it. Then gradients and updated weights can be put beside those of one
device. Where a part is no such slice nothing is compared, and nobody is accused.
"""

import io
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from d2lmgpu.watch.check import words
from d2lmgpu.watch.check.comparison import SAME

EPS = {True: 1e-7, False: 1e-2}  # double or not: gradients that differ by less are the same
SMALL = 1e-4  # of the whole gradient: a parameter's that is smaller is measured beside this


class NotComparedError(Exception):
    """Why the parts cannot be put beside the parameters of one process."""


@dataclass(frozen=True)
class Finding:
    """``equal``, ``difference`` and ``steps`` of the updates; ``defect`` and ``detail``."""

    equal: bool
    difference: float
    steps: int
    defect: str = "none"
    detail: str = ""


class Held:
    """What the ranks of a run held: ``arrays(t)[rank]``, see ``parts.Parts``."""

    def __init__(self, watched):
        self.ranks, self.files = watched.reports, watched.files
        self.names, self.double = self.ranks[0]["names"], all(r["double"] for r in self.ranks)
        counts = [
            sum(f"kept-parts-{t}-{rank['rank']}" in self.files for t in range(99))
            for rank in self.ranks
        ]
        self.steps = min(*counts, *(len(rank["inputs"]) for rank in self.ranks))
        self._read = {}

    def arrays(self, t) -> dict:
        if t not in self._read:
            self._read[t] = [self._rank(t, rank) for rank in self.ranks]
        return self._read[t]

    def _rank(self, t, rank):
        arrays = np.load(io.BytesIO(self.files[f"kept-parts-{t}-{rank['rank']}"]))
        arrays = {name: arrays[name] for name in arrays}
        lists = {
            name: [arrays.get(f"{name}-{i}") for i in range(len(self.names))]
            for name in ("before", "grads", "after")
        }
        return lists | {"terms": arrays["terms"]}

    def losses(self, t) -> list:
        return [rank["updates"][t]["loss"] for rank in self.ranks]

    @cached_property
    def same_rows(self) -> bool | None:
        """Whether all ranks had the same rows in each update; None where none were seen."""
        return same_rows([rank["inputs"] for rank in self.ranks])


def same_rows(inputs) -> bool | None:
    """Whether all of them are alike: {argument: {row: times}} of each update, of each rank."""
    updates = [*zip(*inputs)]
    if not updates or not any(rows for rows in updates[0]):
        return None
    return all(rows == of_rank for rows, *others in updates for of_rank in others)


def drawn(many, single) -> str | None:
    """Words of why weights may differ though nothing is wrong, None if there is no reason.

    Of dropout and of what the net draws nobody knows whether a part of it is drawn as in the whole.
    What a script draws beside it, as its rows, is the same if the generators are, at every draw.
    """
    ranks = [*many.ranks, *single.ranks]
    if any("dropout" in rank["notes"] for rank in ranks):
        return words.NO_BUG["dropout"]
    draws = [[(d["state"], d["step"]) for d in rank["draws"]] for rank in ranks]
    noise = any("noise" in rank["notes"] for rank in ranks)
    alike = all(of_rank == draws[0] for of_rank in draws) and draws[0]
    if any(rank["net_draws"] for rank in ranks) or (noise and not alike):
        return words.NO_BUG["noise"]
    return None


def is_cut(shapes, single) -> bool:
    """Whether ranks have parameters of these shapes where one process has larger ones."""
    return len(shapes) == len(single) and any(
        math.prod(part) < math.prod(of_all) for part, of_all in zip(shapes, single)
    )


def slice_of(part, whole, expected=0) -> tuple[None, int] | tuple[int, int] | None:
    """(dimension, first index) of a part in the whole; None where it is no slice of one dimension.

    Of an array of the same shape it is (None, 0). Where several slices are equal, as those of a
    bias of zeros, it is the one that begins at ``expected``, or none.
    """
    if part.shape == whole.shape:
        return (None, 0) if np.array_equal(part, whole) else None
    if part.ndim != whole.ndim or not part.size:
        return None
    cut = [d for d in range(part.ndim) if part.shape[d] != whole.shape[d]]
    if len(cut) != 1 or part.shape[cut[0]] > whole.shape[cut[0]]:
        return None
    (d,) = cut
    part, whole = np.moveaxis(part, d, 0), np.moveaxis(whole, d, 0)
    most = len(whole) - len(part)
    fits = [
        first
        for first in range(most + 1)
        if np.array_equal(whole[first], part[0])
        and np.array_equal(whole[first : first + len(part)], part)
    ]
    if expected in fits:
        return d, expected
    return (d, fits[0]) if len(fits) == 1 else None


def _places(many, single):
    """For each parameter of one process and each rank (dimension, first index): what it holds."""
    starts = [rank["before"] for rank in many.arrays(0)]
    (alone,) = single.arrays(0)
    order = [many.names.index(name) for name in single.names]
    places = []
    for of_all, index, name in zip(alone["before"], order, single.names):
        parts, slices, first = [start[index] for start in starts], [], 0
        for rank, part in enumerate(parts):
            place = slice_of(part, of_all, first)
            if place is None or place[0] != (slices or [place])[0][0]:
                raise NotComparedError(words.no_slice(name, rank, part.shape, of_all.shape))
            slices.append(place)
            first += 0 if place[0] is None else part.shape[place[0]]
        d = slices[0][0]
        if d is not None:
            covered = np.zeros(of_all.shape[d], bool)
            for part, (_, first) in zip(parts, slices):
                covered[first : first + part.shape[d]] = True
            if not covered.all():
                why = words.SAME_PARTS if len({*slices}) == 1 else words.MISSING_PARTS
                raise NotComparedError(why.format(name=name))
        places.append(slices)
    return order, places


def _must_be_comparable(many, single):
    if not many.steps or not single.steps:
        raise NotComparedError(words.TOO_LARGE)
    names = many.names, single.names
    if any(rank["names"] != names[0] for rank in many.ranks) or sorted(names[0]) != sorted(
        names[1]
    ):
        raise NotComparedError(words.OTHER_NAMES)
    if len(set(names[0])) < len(names[0]):
        raise NotComparedError(words.NO_NAMES)
    if any(rank["optimizers"] > 1 for rank in (*many.ranks, *single.ranks)):
        raise NotComparedError(words.SEVERAL_OPTIMIZERS)
    if many.same_rows is None:
        raise NotComparedError(words.ROWS_UNSEEN)
    if not many.same_rows:
        raise NotComparedError(words.SHARDED)


def _off(pairs, size):
    """How far gradients are apart, relative to the right one, or to a part of the whole."""
    return max(
        float(np.linalg.norm(part - right) / max(np.linalg.norm(right), SMALL * size))
        for part, right in pairs
    )


def _length(arrays):
    return float(np.linalg.norm([np.linalg.norm(array) for array in arrays]))


def compare(many, single) -> Finding:
    """A ``Finding`` of two ``Held``: of all ranks, and of one process.

    Raises NotComparedError with words that say what would make them comparable.
    """
    _must_be_comparable(many, single)
    order, places = _places(many, single)
    double = many.double and single.double
    difference, steps = 0.0, min(many.steps, single.steps)
    for t in range(steps):
        inputs = [rank["inputs"][t : t + 1] for rank in (many.ranks[0], single.ranks[0])]
        if not same_rows(inputs):
            raise NotComparedError(words.OTHER_ROWS_OF_PARTS.format(number=t + 1))
        gradients = _of_update(many, single, t, "grads", order, places)
        (alone,) = single.arrays(t)
        size = _length(grad for grad in alone["grads"] if grad is not None)
        if not size:
            raise NotComparedError(words.NO_WAY)
        off = [_off(pairs, size) for pairs in gradients]
        if max(off) > EPS[double]:
            defect, detail = _cause(many, single, t, gradients, off, EPS[double])
            return Finding(False, max(off), t + 1, defect, detail)
        weights = _of_update(many, single, t, "after", order, places)
        apart = _length(part - right for pairs in weights for part, right in pairs)
        update_length = _length(a - b for a, b in zip(alone["after"], alone["before"]))
        if not update_length:
            raise NotComparedError(words.NO_WAY)
        difference = max(difference, apart / update_length)
        if difference >= SAME[double]:
            return Finding(False, difference, t + 1, "unknown", _of_weights(many, single, t))
    return Finding(True, difference, steps)


def _of_update(many, single, t, what, order, places):
    """For each parameter a pair for each rank: what it holds, and the same of one process."""
    ranks, (alone,) = many.arrays(t), single.arrays(t)
    return [
        [
            (part, _part(right, part, place))
            for part, place in zip(_held(ranks, what, index, right is None, name), slices)
        ]
        for index, right, slices, name in zip(order, alone[what], places, single.names)
        if right is not None or any(rank[what][index] is not None for rank in ranks)
    ]


def _held(ranks, what, index, is_none, name):
    """What the ranks hold; terms of a gradient are summed."""
    held = [rank[what][index] for rank in ranks]
    terms = {bool(rank["terms"][index]) for rank in ranks}
    if is_none or any(part is None for part in held) or len(terms) > 1:
        raise NotComparedError(words.NO_GRADIENT.format(name=name))
    return [sum(held)] * len(held) if what == "grads" and True in terms else held


def _part(whole, part, place):
    """What of an array of one process has the place of a part."""
    d, first = place
    if d is None:
        return whole
    return np.take(whole, range(first, first + part.shape[d]), axis=d)


def _cause(many, single, t, gradients, off, eps):
    """Why gradients are wrong though all began alike: (defect, detail)."""
    scales = [_one_scale(of_rank, eps) for of_rank in zip(*gradients)]
    if None not in scales:
        detail = " and ".join(f"{scale:.3g}" for scale in scales)
        alike = max(scales) - min(scales) <= eps * max(scales)
        return (
            "unknown" if alike else "norm"
        ), f"{words.SCALED} {detail} times those of one device"
    (alone,) = single.arrays(t)
    names = [name for name, grad in zip(single.names, alone["grads"]) if grad is not None]
    wrong = [name for name, apart in zip(names, off) if apart > eps]
    most, worst = max(zip(off, names))
    detail = f"{len(wrong)} of {len(off)} gradients are wrong, {worst} by {most:.0%}"
    losses, (right,) = many.losses(t), single.losses(t)
    if right is None or None in losses:
        return "unknown", detail
    near = [abs(loss - right) <= eps * abs(right) for loss in (*losses, sum(losses))]
    if all(near[:-1]) or near[-1]:  # each has the loss, or a term of it
        return "backward-sum", f"the loss is that of one device; {detail}; the last is {wrong[-1]}"
    return "forward-sum", f"the loss is {losses[0]:.6g} on rank 0 and {right:.6g} on one device"


def _one_scale(pairs, eps):
    """The number by which all gradients of a rank are multiplied; None if there is none."""
    squares = sum(float(np.vdot(right, right)) for _, right in pairs)
    scale = sum(float(np.vdot(part, right)) for part, right in pairs) / squares if squares else 0
    if not scale:
        return None
    scaled = [(part / scale, right) for part, right in pairs]
    return scale if _off(scaled, _length(right for _, right in pairs)) <= eps else None


def _of_weights(many, single, t):
    rate, right_rate = (run.ranks[0]["updates"][t]["lr"] for run in (many, single))
    if rate != right_rate:
        return (
            f"the gradients are those of one device, and the rate is {rate[0]}, not {right_rate[0]}"
        )
    return "the gradients are those of one device, and the updated weights are not"
