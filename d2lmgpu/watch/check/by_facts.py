"""Defects that show in who was called, and with what: rules as in ``rules``."""

ROUND = 0.02  # rates that differ by less grew alike


def aliasing(e, one):
    if e.ranks[0]["aliased"]:
        return "aliasing", e.ranks[0]["aliased"], "one tensor stands several times in the list"
    if not e.grouped and e.ranks[0]["shared"]:
        return "aliasing", e.line("optimizer"), "several optimizers hold the very same parameters"
    return None


def not_grouped(e, one):
    if not e.grouped and e.world > 1:
        return (
            "not-exchanged",
            e.line("step"),
            "without init_process_group each process trains for itself",
        )
    return None


def nothing_learned(e, one):
    """No optimizer gets a gradient that is not zero."""
    every = [optimizer for rank in e.ranks for optimizer in rank["optimizers"]]
    if not every or any(one["gradients"] == "some" or one["updates"] < 2 for one in every):
        return None
    first = every[0]
    if first["frozen"]:
        return "nothing-learned", first["where"], "the optimizer has frozen parameters alone"
    if first["gradients"] == "zero":
        return "nothing-learned", e.line("loss", "backward"), "every gradient is zero"
    if len(first["foreign"]) == first["held"]:
        why = "the optimizer holds no parameter of the net that is trained"
        return "nothing-learned", first["where"], why
    return "nothing-learned", e.line("backward"), "it reaches no parameter of the optimizer"


def left_out(e, one):
    """An optimizer holds parameters that the net had before, in place of those that it has."""
    left = e.first["left_out"]
    dimensions = [number for _, number, _ in left]
    for optimizer in e.first["optimizers"] if left and all(newest for *_, newest in left) else ():
        if optimizer["updates"] > 1 and dimensions == optimizer["foreign"]:
            names = ", ".join(name for name, *_ in left[:3])
            why = f"the optimizer was made before the net got {names}"
            return "nothing-learned", optimizer["where"], why
    return None


def same_batches(e, one):
    """All ranks train on the very same rows."""
    seen = [{one["batch"] for rank in e.passes(t) for one in rank} for t in range(e.steps)]
    batches = [batch for batch in seen if None not in batch]
    if e.world > 1 and len(batches) > 1 and all(len(batch) == 1 for batch in batches):
        return "sampler", e.line("forward", "backward"), "every rank trains on the very same rows"
    return None


def parts(e, one):
    """Each rank has cut the data into other parts, and they share out what differs."""
    for mine, *others in zip(*(rank["samplers"] for rank in e.ranks)):
        if any(other["part"] != mine["part"] for other in others):
            detail = "each rank has cut the data elsewhere: what one tests on, another trains on"
            return "sampler", mine["cut"] or mine["where"], detail
    return None


def growth(e, one):
    """(times that the learning rate grew, times that the batch did) from one process to k."""
    if not one or e.world == 1:
        return None
    many = [update["lr"][0] for update in e.first["updates"]]
    single = [lr[0] for lr in one.own_lr]
    rows, alone = e.rows(0), one.own_rows
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
            number = sampler["repeated"]
            detail = f"{number} {'row is' if number == 1 else 'rows are'} evaluated twice"
            return "sampler", sampler["where"], detail
    return None


def same_seed(e, one):
    """The ranks drew the same noise: no data, of which each then takes its part."""
    if e.world == 1 or (one and one.near):
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
