"""Names a defect by what the ranks saw: the first rule that applies, causes before effects.

A rule takes an ``Evidence`` and the report of the run with one process (None without one) and
returns None or (defect, where, detail): where is "file:line" or None, detail a few words.
"""

import numpy as np

ROUND = 0.02  # a coefficient that is off by less is the same


def defect(evidence, one=None):
    """(defect, where, detail) of the first rule that applies; ("none", None, "") of none."""
    for rule in RULES:
        found = rule(evidence, one)
        if found:
            return found
    return "none", None, ""


def aliasing(e, one):
    if e.ranks[0]["aliased"]:
        return "aliasing", e.ranks[0]["aliased"], "one tensor stands several times in the list"
    if not e.grouped and e.ranks[0]["shared"]:
        return "aliasing", e.line("optimizer"), "several optimizers hold the very same parameters"
    return None


def not_grouped(e, one):
    if not e.grouped:
        return (
            "not-exchanged",
            e.line("step"),
            "without init_process_group each process trains for itself",
        )
    return None


def exchanged(e, one):
    """Parameters whose gradients differ between ranks, although their optimizers use them."""
    if e.world == 1:
        return None
    last = min(e.steps, 8)
    apart = [e.apart("used", t) > e.eps for t in range(last)]
    start = bool((e.apart("before", 0) > e.eps).any())
    used = np.any([np.any([np.abs(p).max(initial=0) for p in e.parts(e.used(t)[0])])
                   for t in range(last)])  # fmt: skip
    if not used:
        return None
    missing = np.any(apart, 0)
    whole = [bool(one.all()) for one in apart]
    if any(whole) or missing.all():
        return _nothing_exchanged(e, whole, start)
    if missing.any():
        names = [name for name, one in zip(e.names, missing) if one]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        where = e.line("exchange", "ddp", "step")
        return "missing-parameter", where, f"{', '.join(names[:3])}{more}"
    return None


def _nothing_exchanged(e, whole, start):
    """Each rank used its own gradient: were the weights brought together instead?"""
    clip = _early_clip(e)
    if clip:
        return clip
    together = [not (e.apart("before", t) > e.eps).any() for t in range(1, min(e.steps, 8))]
    moved = [(e.apart("after", t) > e.eps).any() for t in range(min(e.steps, 8))]
    if together and all(together) and any(moved):
        return "optimizer-state", e.line("exchange", "step"), "weights are averaged, states are not"
    if start and not any(whole):
        return None
    times = "" if all(whole) else f" in {sum(whole)} of {len(whole)} updates"
    bypassed = e.line("ddp") and not e.line("exchange")
    where = e.line("forward", "backward") if bypassed else e.line("exchange", "step")
    return "not-exchanged", where, f"each rank used its own gradient{times}"


def different_start(e, one):
    apart = e.apart("before", 0) > e.eps
    if apart.any():
        names = [name for name, far in zip(e.names, apart) if far]
        return "different-start", e.line("optimizer"), ", ".join(names[:3])
    return None


def early_clip(e, one):
    return _early_clip(e)


def _early_clip(e):
    for t in range(e.steps):
        clips = [rank["updates"][t]["clip"] for rank in e.ranks]
        late = [clip for clip in clips if clip and clip["changed"] and not clip["late"]]
        if late and (e.apart("unclipped", t) > e.eps).any():
            return "clip-before-allreduce", late[0]["where"], "each rank clips its own gradient"
    return None


def same_batches(e, one):
    """All ranks train on the very same rows."""
    seen = [{one["batch"] for rank in e.passes(t) for one in rank} for t in range(e.steps)]
    batches = [batch for batch in seen if None not in batch]
    if e.world > 1 and len(batches) > 1 and all(len(batch) == 1 for batch in batches):
        return "sampler", e.line("forward", "backward"), "every rank trains on the very same rows"
    return None


def composition(e, one):
    """Of which ranks' gradients the used one is made, where it is not the right one."""
    wrong = [t for t in range(e.steps) if e.errors[t] > 10 * e.eps]
    stale = [t for t in wrong if _is_stale(e, t)]
    if stale and len(stale) * 2 > len(wrong) - 1:
        where = e.line("exchange", "step")
        return "stale-gradient", where, f"in {len(stale)} of {e.steps} updates"
    found = [shape for shape in (_coefficients(e, t) for t in wrong) if shape is not None]
    if not found or len(found) * 2 < len(wrong):
        return None
    return _clipped_by_hand(e, found) or _scaled(e, found)


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


def _clipped_by_hand(e, found):
    """Ranks' gradients came in with factors that differ from rank to rank and step to step."""
    ratios = np.array([actual / expected for _, actual, expected in found if (expected > 0).all()])
    raw = np.array([actual for _, actual, _ in found])
    if not len(ratios) or e.world == 1:
        return None
    uneven = np.abs(raw - raw.mean(1, keepdims=True)).max() > ROUND * np.abs(raw).max()
    varying = np.ptp(raw, 0).max() > ROUND * np.abs(raw).max()
    if uneven and varying and (ratios < 1 + ROUND).all():
        where = e.line("exchange", "backward")
        return "clip-before-allreduce", where, "each rank has scaled its own gradient"
    return None


def _scaled(e, found):
    ratios = np.array([actual / expected for _, actual, expected in found if (expected > 0).all()])
    raw = np.array([actual for _, actual, _ in found])
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


def optimizer_state(e, one):
    for t in range(min(e.steps, 8)):
        equal = not (e.apart("before", t) > e.eps).any() and not (e.apart("used", t) > e.eps).any()
        if equal and (e.apart("after", t) > e.eps).any():
            return "optimizer-state", e.line("optimizer"), f"update {t + 1} moves the ranks apart"
    return None


def growth(e, one):
    """(times that the learning rate grew, times that the batch did) from one process to k."""
    if not one or e.world == 1:
        return None
    many = [update["lr"][0] for update in e.first["updates"]]
    single = [lr[0] for lr in one["own_lr"]]
    rows, alone = e.rows(0), one["own_rows"]
    if not rows or not alone or not single or not min(single[0], single[-1]):
        return None
    settled = (
        many[-1] <= many[-2] and single[-1] <= single[-2] if len(single) > 1 < len(many) else 0
    )
    grown = max(many) / max(single) if settled else many[0] / single[0]
    return grown, rows / alone


def rate(e, one):
    """The learning rate grew more than the batch."""
    grown, batch = growth(e, one) or (1, 1)
    if grown > batch * (1 + ROUND):
        detail = f"rate times {grown:.3g}, rows times {batch:.3g}"
        return "lr-scaled-twice", e.line("optimizer"), detail
    return None


def no_set_epoch(e, one):
    for sampler in e.first["samplers"]:
        again = len(sampler["epochs"]) > 1 and len(set(sampler["epochs"])) == 1
        if sampler["trains"] and sampler["shuffle"] and again and not sampler["set"]:
            return (
                "sampler",
                sampler["where"],
                "set_epoch is never called: each epoch has one order",
            )
    return None


def buffers(e, one):
    """Several ranks evaluated, each with statistics of its own."""
    for first in e.first["evaluations"]:
        for rank in e.ranks[1:]:
            others = [v for v in rank["evaluations"] if v["step"] == first["step"]]
            if others and others[0]["buffers"] != first["buffers"]:
                return "buffers", first["where"], "running statistics differ between ranks"
    return None


def repeated(e, one):
    for sampler in e.first["samplers"]:
        if sampler["evaluates"] and not sampler["trains"] and sampler["repeated"]:
            detail = f"{sampler['repeated']} rows are evaluated twice"
            return "sampler", sampler["where"], detail
    return None


def same_seed(e, one):
    """The ranks drew the same noise."""
    if e.world == 1:
        return None
    draws = [{(d["step"], d["where"], d["state"]) for d in rank["draws"]} for rank in e.ranks]
    common = set.intersection(*draws)
    if common and len(common) * 2 > len(draws[0]):
        return (
            "same-seed",
            e.line("seed") or min(common)[1],
            "the same random numbers on every rank",
        )
    return None


RULES = (
    aliasing, not_grouped, early_clip, exchanged, different_start, same_batches, composition,
    optimizer_state, rate, no_set_epoch, buffers, repeated, same_seed,
)  # fmt: skip
