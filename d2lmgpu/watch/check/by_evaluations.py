"""A rank's own metric that is taken for that of all ranks: a rule as in ``rules``, and a note."""

OWN = (
    "Each rank evaluates its own part ({part} of {whole} rows, {where}), and no rank sends what "
    "it found to another: a number of rank 0 alone is that of its part."
)


def evaluation(e, comparison) -> tuple | None:
    """Hits of a part are divided by all rows, or its metric is printed as that of all."""
    for ranks, whole in _unshared(e, comparison):
        part, prints = ranks[0]["part"], [line for rank in ranks for line in rank["printed"]]
        lines = [[where for where, by in rank["divisions"] if by == whole] for rank in ranks]
        if all(lines) and prints:
            why = f"what {part} of {whole} rows add up to is divided by {whole}, and never summed"
            return "evaluation", lines[0][0], why
        kinds = {kind for _, kind in prints}
        if "all" in kinds and "own" not in kinds:
            where = next(where for where, kind in prints if kind == "all")
            why = f"a rank's own metric is printed as that of all: of {part} of {whole} rows"
            return "evaluation", where, why
    return None


def own_part(e, comparison) -> str | None:
    """What is told without an alarm; None if nothing is to be told."""
    for ranks, whole in _unshared(e, comparison):
        if not any(kind == "own" for rank in ranks for _, kind in rank["printed"]):
            return OWN.format(part=ranks[0]["part"], whole=whole, where=ranks[0]["where"])
    return None


def _unshared(e, comparison):
    """([each rank's], rows of all) of the evaluations of parts after which nothing is exchanged."""
    if e.world == 1 or not e.grouped:
        return
    every = [{part["step"]: part for part in rank["evaluated"]} for rank in e.ranks]
    comparable = comparison and not comparison.single.first["drawn_for"]
    alone = {p["step"]: p for p in comparison.single.first["evaluated"]} if comparable else {}
    if 2 * max(map(len, every)) > e.steps:
        return  # that often it is a part of the update, as a teacher's answers
    for step in sorted(set(every[0]).intersection(*every)):
        ranks = [parts[step] for parts in every]
        over = all(
            part["end"] or rank["end"] in ("finished", "exit") for part, rank in zip(ranks, e.ranks)
        )
        if not over or any(part["exchanged"] or part["trains"] for part in ranks):
            continue
        if whole := _whole(ranks, alone.get(step)):
            yield ranks, whole


def _whole(ranks, alone):
    """How many rows there are of which each rank has another part; None if that is not sure."""
    parts = [rank["part"] for rank in ranks]
    if not all(parts):
        return None
    together, of = sum(parts), {rank["of"] for rank in ranks}
    rows = [set(rank["rows"]) for rank in ranks]
    every = set.union(*rows)
    drawn = any(rank["random"] for rank in ranks)
    if of == {min(of)} and not drawn and max(parts) < min(of) <= together < min(of) + len(ranks):
        whole = min(of)  # a sampler shares them out, and may repeat some
    elif alone and alone["part"] == together and set(alone["rows"]) == every:
        whole = together
    else:
        return None
    shared = sum(map(len, rows)) - len(every)
    return whole if shared <= together - whole else None
