"""Defects that show in who was called, and with what: rules as in ``rules``."""

from itertools import pairwise

ROUND = 0.02  # rates that differ by less grew alike


def aliasing(e, comparison) -> tuple | None:
    if e.ranks[0]["aliased"]:
        return "aliasing", e.ranks[0]["aliased"], "one tensor stands several times in the list"
    if not e.grouped and e.ranks[0]["shared"]:
        return "aliasing", e.line("optimizer"), "several optimizers hold the very same parameters"
    return None


def not_grouped(e, comparison) -> tuple | None:
    if not e.grouped and e.world > 1:
        return (
            "not-exchanged",
            e.line("step"),
            "without init_process_group each process trains for itself",
        )
    return None


def plan(e, comparison) -> tuple | None:
    """A plan of ``parallelize_module`` cuts nothing, since its entries match no layer."""
    unmatched = e.ranks[0]["plan"]["unmatched"]
    if unmatched:
        names = " and ".join(repr(name) for name in dict.fromkeys(unmatched))
        return "plan", e.ranks[0]["plan"]["where"], f"no layer matches {names} of the plan"
    return None


def nothing_learned(e, comparison) -> tuple | None:
    """No optimizer gets a gradient that is not zero."""
    every = [optimizer for rank in e.ranks for optimizer in rank["optimizers"]]
    if not every or any(o["gradients"] == "some" or o["updates"] < 2 for o in every):
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


def left_out(e, comparison) -> tuple | None:
    """An optimizer holds parameters that the net had before, in place of those that it has."""
    left = e.first["left_out"]
    dimensions = [number for _, number, _ in left]
    for optimizer in e.first["optimizers"] if left and all(newest for *_, newest in left) else ():
        if optimizer["updates"] > 1 and dimensions == optimizer["foreign"]:
            names = ", ".join(name for name, *_ in left[:3])
            why = f"the optimizer was made before the net got {names}"
            return "nothing-learned", optimizer["where"], why
    return None


def same_batches(e, comparison) -> tuple | None:
    """All ranks train on the very same rows."""
    of_updates = [
        {passed["batch"] for rank in e.passes(t) for passed in rank} for t in range(e.steps)
    ]
    batches = [batch for batch in of_updates if None not in batch]
    if e.world > 1 and len(batches) > 1 and all(len(batch) == 1 for batch in batches):
        return "sampler", e.line("forward", "backward"), "every rank trains on the very same rows"
    return None


def parts(e, comparison) -> tuple | None:
    """Each rank has cut the data into other parts, and they share out what differs."""
    for sampler, *others in zip(*(rank["samplers"] for rank in e.ranks)):
        if any(other["part"] != sampler["part"] for other in others):
            detail = "each rank has cut the data elsewhere: what one tests on, another trains on"
            return "sampler", sampler["cut"] or sampler["where"], detail
    return None


def other_data(e, comparison) -> tuple | None:
    """Ranks share out a data set that holds other rows on each of them."""
    for sampler, *others in zip(*(rank["samplers"] for rank in e.ranks)):
        if sampler["rows"] and any(other["rows"] != sampler["rows"] for other in others):
            why = "each rank has a data set of other rows, and takes its part of that"
            return "sampler", sampler["where"], why
    return None


def overlap(e, comparison) -> tuple | None:
    """Parts that are cut by each rank for itself: some rows are in several, others in none."""
    parts = [rank["part"] for rank in e.ranks]
    if e.world == 1 or not all(parts):
        return None
    sets = [set(part["indices"]) for part in parts]
    together, number = set.union(*sets), sum(map(len, sets))
    if number > parts[0]["of"] or len(together) == number or all(part == sets[0] for part in sets):
        return None
    why = f"{number - len(together)} rows are trained on by several ranks"
    return "sampler", parts[0]["where"], f"{why}, {parts[0]['of'] - len(together)} by none"


def growth(e, comparison) -> tuple | None:
    """(times that the learning rate grew, times that the batch did) from one process to k."""
    if not comparison or e.world == 1:
        return None
    many = [update["lr"][0] for update in e.first["updates"]]
    own = [lr[0] for lr in comparison.own_lr]  # the rates of one process, not those it was given
    rows, own_rows = e.rows(0), comparison.own_rows
    if not rows or not own_rows or not own or not min(own[0], own[-1]):
        return None
    settled = many[-1] <= many[-2] and own[-1] <= own[-2] if len(own) > 1 < len(many) else 0
    grown = max(many) / max(own) if settled else many[0] / own[0]
    return grown, rows / own_rows


def rate(e, comparison) -> tuple | None:
    """The learning rate grew more than the batch."""
    grown, batch = growth(e, comparison) or (1, 1)
    if grown > batch * (1 + ROUND):
        detail = f"rate times {grown:.3g}, rows times {batch:.3g}"
        return "lr-scaled-twice", e.line("optimizer"), detail
    return None


def pace(e, comparison) -> float | None:
    """How many times as fast the schedule goes through its length, a row, as with one process.

    None where that is not seen: no schedule steps several times an update, or its rates hardly
    change. A schedule may do so, if its length is counted in the steps of one process.
    """
    if not comparison or comparison.forced or not e.rows(0) or not comparison.own_rows:
        return None
    many, single = e.first["schedule"], comparison.single.first["schedule"]
    often, once = _stride(many["counts"]), _stride(single["counts"])
    if not once or often <= once:
        return None
    rates = _rates(many, [update["lr"] for update in e.first["updates"]])
    own_rates = _rates(single, comparison.own_lr)
    lengths = e.updates_an_epoch, comparison.single.updates_an_epoch
    shorter = lengths[1] / lengths[0] if all(lengths) else e.world
    change = max(rates.values(), default=0) - min(rates.values(), default=0)
    for factor in (1, shorter):  # is its length the same, or that of the shorter epoch?
        there = ((rate, own_rates.get(round(c * factor))) for c, rate in rates.items())
        pairs = [(rate, other) for rate, other in there if other is not None]
        if len(pairs) > 2 and max(abs(a - b) for a, b in pairs) < 0.1 * change:
            return factor * (often / once) / (e.rows(0) / comparison.own_rows)
    return None


def _stride(counts):
    """The fewest steps of a schedule between two updates between which it makes any."""
    known = [count for count in counts if count is not None]
    return min((b - a for a, b in pairwise(known) if b > a), default=0)


def _rates(schedule, rates):
    """{count of a schedule: the rate that it has set, relative to the one it began with}."""
    return {
        count: lr[0] / schedule["base"]
        for count, lr in zip(schedule["counts"], rates)
        if count is not None and schedule["base"]
    }


def schedule(e, comparison) -> tuple | None:
    """It steps several times an update, and goes faster through the rows than with one process."""
    times = pace(e, comparison) or 1
    if times < 1.5:
        return None
    often = _stride(e.first["schedule"]["counts"])
    why = f"{often} steps an update: after as many rows it is {times:.3g} times as far"
    return "schedule", e.first["schedule"]["where"], why


def no_set_epoch(e, comparison) -> tuple | None:
    for sampler in e.first["samplers"]:
        again = len(sampler["epochs"]) > 1 and len(set(sampler["epochs"])) == 1
        if sampler["trains"] and sampler["shuffle"] and again and not sampler["set"]:
            return (
                "sampler",
                sampler["where"],
                "set_epoch is never called: each epoch has one order",
            )
    return None


def buffers(e, comparison) -> tuple | None:
    """Several ranks evaluated, each with statistics of its own."""
    for first in e.first["evaluations"]:
        for rank in e.ranks[1:]:
            others = [v for v in rank["evaluations"] if v["step"] == first["step"]]
            if others and others[0]["buffers"] != first["buffers"]:
                return "buffers", first["where"], "running statistics differ between ranks"
    return None


def repeated(e, comparison) -> tuple | None:
    for sampler in e.first["samplers"]:
        if sampler["evaluates"] and not sampler["trains"] and sampler["repeated"]:
            number = sampler["repeated"]
            detail = f"{number} {'row is' if number == 1 else 'rows are'} evaluated twice"
            return "sampler", sampler["where"], detail
    return None


def same_seed(e, comparison) -> tuple | None:
    """The ranks drew the same noise: no data, of which each then takes its part."""
    if e.world == 1 or (comparison and comparison.near):
        return None
    draws = [
        {(d["step"], d["where"], d["state"], d["seed"]) for d in rank["draws"]} for rank in e.ranks
    ]
    common = set.intersection(*draws)
    if common and len(common) * 2 > len(draws[0]):
        # one draw is seen twice where random.uniform draws by a method of its generator
        _, where, _, seed = min(common, key=lambda d: (d[0], d[1] or "", d[2], not d[3]))
        where = (seed and e.line(seed)) or where
        return "same-seed", where, "the same random numbers on every rank"
    return None
