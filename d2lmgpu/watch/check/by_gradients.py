"""Defects that show in the gradients and weights of each update: rules as in ``rules``."""

import numpy as np

from d2lmgpu.watch.check.evidence import distance

ROUND = 0.02  # a coefficient that is off by less is the same


def own_norm(e, comparison) -> tuple | None:
    """The ranks use the same sum of all gradients, each scaled by a number of its own."""
    for t in range(e.steps if e.world > 1 else 0):
        used = e.used(t)
        lengths = np.linalg.norm(used, axis=1)
        if not lengths.all() or np.ptp(lengths) < ROUND * lengths.max():
            continue
        along = used / lengths[:, None]
        coefficients, left = e.fit(t, along[0], [*e.own(t)])
        if left > 30 * e.eps or (coefficients <= 0).any():
            continue
        if all(distance(direction, along[0]) < e.eps for direction in along):
            where = e.first["norm"]["taken"] or e.line("step")
            return "norm", where, "each rank scales the averaged gradient by a norm of its own"
    return None


def other_norm(e, comparison) -> tuple | None:
    """The averaged gradient is shortened by a norm, and that of one device by a smaller one."""
    taken, summed = e.first["norm"]["taken"], e.first["norm"]["summed"]
    if not (taken or summed) or not _differs(comparison) or e.world == 1:
        return None
    factors = []
    for t in range(min(comparison.steps, e.steps)):
        used, right, left = comparison.gradients(t)
        if left > 30 * e.eps or not right.all():
            return None
        ratios = used / right
        if np.ptp(ratios) > ROUND * np.abs(ratios).max():
            return None
        factors.append(float(ratios.mean()))
    if max(factors) > 1 + ROUND or min(factors) > 1 - ROUND:
        return None
    again = [1, e.world**-0.5, 1 / e.world]
    lengths = [np.linalg.norm(e.used(t)[0]) for t in range(len(factors))]
    # Where each update is clipped the factor is always the same: what else divides by a root of k?
    by_root = max(abs(f - e.world**-0.5) for f in factors) < ROUND
    clipped = min(factors) < max(factors) - ROUND or np.ptp(lengths) < ROUND * max(lengths)
    by_powers = all(min(abs(f - power) for power in again) < ROUND for f in factors)
    if summed and by_powers and (clipped or by_root):
        why = f"all ranks have the whole norm, and it is summed over {e.world} of them"
        return "norm", summed, why
    if np.ptp(factors) > ROUND:
        return "norm", taken or summed, "its norm was taken before the exchange"
    return None


def _differs(comparison):
    """Whether one process was compared, and its weights are others."""
    return comparison and comparison.compared and not comparison.near


def partly_exchanged(e, comparison) -> tuple | None:
    """Of the backward passes of an update some are exchanged, and others stay on their rank."""
    for t in range(e.steps if e.world > 1 else 0):
        stay = [_passes_that_stay(e, t, rank) for rank in range(e.world)]
        if stay[0] and all(passes == stay[0] for passes in stay):
            where = e.line("no_sync", "exchange", "backward")
            some = f"{len(stay[0])} of {len(e.passes(t)[0])} micro-batches"
            return "partly-exchanged", where, f"each rank keeps {some} to itself"
    return None


def _passes_that_stay(e, t, rank):
    """The backward passes of update t of which a rank uses its own part alone; None if unclear."""
    (number, *others) = {len(passes) for passes in e.passes(t)}
    if others or number < 2:
        return None
    columns = [arrays[f"own-{t}-{b}"] for arrays in e.arrays for b in range(number)]
    if len(columns) * 2 > len(columns[0]):
        return None
    coefficients, left = e.fit(t, e.used(t)[rank], columns)
    by_rank = coefficients.reshape(e.world, number)
    small = ROUND * np.abs(coefficients).max()
    alone = (np.abs(np.delete(by_rank, rank, 0)) < small).all(0) & (by_rank[rank] > small)
    every = (np.ptp(by_rank, 0) < small) & (by_rank[rank] > small)
    if left > 30 * e.eps or not every.any() or not (alone | every).all():
        return None
    return [b for b in range(number) if alone[b]]


def exchanged(e, comparison) -> tuple | None:
    """Parameters whose gradients differ between ranks, although their optimizers use them."""
    if e.world == 1:
        return None
    last = min(e.steps, 8)
    apart = [e.apart("used", t) > e.eps for t in range(last)]
    start = bool((e.apart("before", 0) > e.eps).any())
    used = np.any(
        [np.any([np.abs(p).max(initial=0) for p in e.parts(e.used(t)[0])]) for t in range(last)]
    )
    if not used:
        return None
    missing = np.any(apart, 0)
    whole = [bool(differs.all()) for differs in apart]
    if any(whole) or missing.all():
        return _nothing_exchanged(e, whole, start)
    if missing.any():
        names = [name for name, differs in zip(e.names, missing) if differs]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        where = e.line("exchange", "ddp", "step")
        return "missing-parameter", where, f"{', '.join(names[:3])}{more}"
    return None


def _nothing_exchanged(e, whole, start):
    """Each rank used its own gradient: were the weights brought together instead?"""
    together = [not (e.apart("before", t) > e.eps).any() for t in range(1, min(e.steps, 8))]
    moved = [(e.apart("after", t) > e.eps).any() for t in range(min(e.steps, 8))]
    if together and all(together) and any(moved):
        if not e.first["updates"][-1]["state"]:
            return None  # without a state that is the same as to average gradients
        return "optimizer-state", e.line("exchange", "step"), "weights are averaged, states are not"
    if start and not any(whole):
        return None
    times = "" if all(whole) else f" in {sum(whole)} of {len(whole)} updates"
    bypassed = e.line("ddp") and not e.line("exchange")
    where = e.line("forward", "backward") if bypassed else e.line("exchange", "step")
    return "not-exchanged", where, f"each rank used its own gradient{times}"


def different_start(e, comparison) -> tuple | None:
    apart = e.apart("before", 0) > e.eps
    if apart.any():
        names = [name for name, far in zip(e.names, apart) if far]
        return "different-start", e.line("optimizer"), ", ".join(names[:3])
    return None


def early_clip(e, comparison) -> tuple | None:
    """Each rank clipped, and an exchange came after it."""
    for t in range(e.steps):
        clips = [rank["updates"][t]["clip"] for rank in e.ranks]
        late = [clip for clip in clips if clip and clip["changed"] and not clip["late"]]
        if late and (e.apart("unclipped", t) > e.eps).any():
            return "clip-before-allreduce", late[0]["where"], "each rank clips its own gradient"
    return None


def composition(e, comparison) -> tuple | None:
    """Of which ranks' gradients the used one is made, where it is not the right one."""
    wrong = [t for t in range(e.steps) if e.errors[t] > 10 * e.eps]
    stale = [t for t in wrong if _is_stale(e, t)]
    if stale and len(stale) * 2 > len(wrong) - 1:
        where = e.line("exchange", "step")
        return "stale-gradient", where, f"in {len(stale)} of {e.steps} updates"
    shapes = [shape for shape in (_coefficients(e, t) for t in wrong) if shape is not None]
    if not shapes or len(shapes) * 2 < len(wrong):
        return None
    if comparison and comparison.near and not e.scales_known:
        return None  # a loss of the script's own, whose scale shows in the weights alone
    return _clipped_by_hand(e, shapes) or _scaled(e, shapes)


def _coefficients(e, t):
    """(actual, expected) coefficients of the ranks' own gradients in update t, or None."""
    own = e.own(t)
    used = e.used(t)[0]
    coefficients, left = e.fit(t, used, list(own))
    if left > 30 * e.eps:
        return None
    expected = [sum(ws) / max(len(ws), 1) for ws in e.weights(t)]
    return t, coefficients, np.array(expected)


def _is_stale(e, t):
    """Whether the gradient before explains what the current ones leave over."""
    used = e.used(t)[0]
    own, old = list(e.own(t)), list(e.every("old", t))
    left = e.fit(t, used, own)[1]
    if left < 30 * e.eps:
        return False
    return e.fit(t, used, own + old)[1] < 30 * e.eps


def _clipped_by_hand(e, shapes):
    """Ranks' gradients came in with factors that differ from rank to rank and step to step."""
    ratios = np.array([actual / expected for _, actual, expected in shapes if (expected > 0).all()])
    raw = np.array([actual for _, actual, _ in shapes])
    if not len(ratios) or e.world == 1:
        return None
    uneven = np.abs(raw - raw.mean(1, keepdims=True)).max() > ROUND * np.abs(raw).max()
    varying = np.ptp(raw, 0).max() > ROUND * np.abs(raw).max()
    if uneven and varying and (ratios < 1 + ROUND).all():
        where = e.line("exchange", "backward")
        return "clip-before-allreduce", where, "each rank has scaled its own gradient"
    return None


def _scaled(e, shapes):
    ratios = np.array([actual / expected for _, actual, expected in shapes if (expected > 0).all()])
    raw = np.array([actual for _, actual, _ in shapes])
    if not len(ratios):
        return None
    even = np.abs(raw - raw.mean(1, keepdims=True)).max() < ROUND * np.abs(raw).max()
    same = np.ptp(ratios, 1).max() < ROUND * np.abs(ratios).max()
    factor = float(np.median(ratios))
    constant = np.ptp(ratios) < ROUND * abs(factor)
    where = e.line("exchange", "backward")
    if same and constant and abs(factor - 1) > ROUND:
        passes = len(e.passes(0)[0])
        why = "summed" if abs(factor - e.world) < ROUND else f"{factor:.3g} times the mean"
        if passes > 1 and abs(factor - passes) < ROUND * passes:
            why, where = f"{passes} micro-batches are added and not divided", e.line("backward")
        return "wrong-scale", where, why
    if even and not same:
        return "mean-of-means", e.line("backward"), "ranks with more rows count no more than others"
    return None


def against_one(e, comparison) -> tuple | None:
    """Some weights of the ranks' gradients give that of one device, and others were used."""
    if not _differs(comparison) or e.world == 1:
        return None
    comparisons = [comparison.gradients(t) for t in range(min(comparison.steps, len(e.errors)))]
    pairs = [
        (used, right) for used, right, left in comparisons if left < 30 * e.eps and right.all()
    ]
    if not pairs or len(pairs) * 2 < len(comparisons):
        return None
    used, right = (np.array(column) for column in zip(*pairs))
    ratios = used / right
    factor = float(np.median(ratios))
    if np.ptp(ratios) < ROUND * abs(factor):
        if abs(factor - 1) < ROUND:
            return None
        why = f"used is {factor:.3g} times the gradient of one device"
        return "wrong-scale", e.line("exchange", "backward"), why
    even = np.ptp(used, 1).max() < ROUND * np.abs(used).max()
    whole = np.abs(used.sum(1) / right.sum(1) - 1).max() < ROUND
    if even and whole and (right > 0).all():
        shares = right / right.sum(1, keepdims=True)
        t = int(shares.max(1).argmax())
        rank = int(shares[t].argmax())
        why = f"rank {rank}'s rows should weigh {shares[t, rank]:.0%}, and weigh {1 / e.world:.0%}"
        return "mean-of-means", e.line("backward"), why
    return None


def optimizer_state(e, comparison) -> tuple | None:
    for t in range(min(e.steps, 8)):
        equal = not (e.apart("before", t) > e.eps).any() and not (e.apart("used", t) > e.eps).any()
        if equal and (e.apart("after", t) > e.eps).any():
            return "optimizer-state", e.line("optimizer"), f"update {t + 1} moves the ranks apart"
    return None
