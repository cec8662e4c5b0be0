"""Why the newest run is as fast as it is, from parts of its steps that were timed: one sentence."""

from d2lmgpu.process.step_parts import (
    COMPUTING,
    IN_WORDS,
    MEETING,
    OF_A_LANE,
    WAITING,
    milliseconds,
    part_change,
)
from d2lmgpu.records.run import counted

AGREE = 0.1  # how far the timed steps and the table's speeds may be apart, in shares
NOTHING = "Its times are not explained, and it judges no prediction: run it again."
UNKNOWN = "What made the difference is not told:"
SMALL = 0.02  # of the baseline's step: such a change is not worth a word


def why(model) -> str:
    """What of a step took less or more time in the newest run than in its baseline, in words.

    Where a run was unsteady, or the timed parts are not most of the difference, or do not agree
    with the speeds in the table, it says that this is why nothing is told. There is nothing to say
    ("") where one of the runs was simulated, has no timed steps, or is not comparable.
    """
    if not model.ended:
        return ""
    new, rows = model.ended[-1], model.table()
    if new.trial.unsteady:
        return f"The newest run was unsteady: {new.trial.unsteady}. {NOTHING}"
    row = next(row for row in rows if new.trial in row.trials)
    if not (row.measured and row.scaling):
        return ""
    base = rows[row.over - 1]
    if base.unsteady:
        reason = base.trials[-1].unsteady
        return f"Row {base.number}, its baseline, was unsteady: {reason}. {NOTHING}"
    steady = {trial.id for trial in base.trials if not trial.unsteady}
    others = [run for run in model.ended if run.trial.id in steady and run.live.where]
    if not row.explained or new.live.where is None or not others:
        return ""
    return sentence(others[-1], new)


def sentence(base, new) -> str:
    """The sentence for a run with timed steps and another one that it is compared with."""
    before, after = base.live.where, new.live.where
    merged = any(w[WAITING] is None and w.get(MEETING) is None for w in (before, after))
    if merged:  # computing and waiting are not told apart
        before, after = both(before), both(after)
    names = {part: IN_WORDS[part] for part in OF_A_LANE}
    if merged:
        names[COMPUTING] = "computing and waiting"
    total = [sum(filter(None, where.values())) for where in (before, after)]
    if None in (base.trial.samples_per_second, new.trial.samples_per_second) or not total[0]:
        return ""
    times = base.trial.samples_per_second / new.trial.samples_per_second
    times *= new.trial.batch_size / base.trial.batch_size  # of a step, as the table has it
    ratio = total[1] / total[0]
    if abs(ratio / times - 1) > AGREE:
        return f"{UNKNOWN} the steps that were timed were not as fast as the whole run."
    changes = {
        name: after[part] - before[part]
        for part, name in names.items()
        if None not in (before.get(part), after.get(part))
    }
    rest = total[1] - total[0] - sum(changes.values())
    of = {name: (before.get(part), after.get(part)) for part, name in names.items()}
    largest = sorted(changes, key=lambda name: -abs(changes[name]))
    largest = [name for name in largest if abs(changes[name]) >= SMALL * total[0]]
    if not largest or abs(rest) > sum(map(abs, changes.values())):
        return f"{UNKNOWN} it is not in the parts of a step that were timed."
    parts = ", ".join(part_change(name, *of[name]) for name in largest)
    batch = ""
    if new.trial.batch_size != base.trial.batch_size:
        batch = f" of {new.trial.batch_size:,} images, not {base.trial.batch_size:,}"
    devices = counted(new.trial.num_gpus, "device")
    return (
        f"On {devices} a step{batch} took {ratio:.2f} times as long as on "
        f"{base.trial.num_gpus} ({milliseconds(total[1])}, not {milliseconds(total[0])}): {parts}."
    )


def both(where) -> dict:
    """``where`` with what devices compute and how long they wait taken together."""
    if where[COMPUTING] is None:
        return where | {WAITING: None}
    return where | {COMPUTING: where[COMPUTING] + (where[WAITING] or 0.0), WAITING: None}
