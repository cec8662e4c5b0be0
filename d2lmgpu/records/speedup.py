"""Speedups, only over what is comparable.

Two rows are comparable if training, code and epochs are the same, and the batch, too: that of all
devices together (strong scaling) or that of each device (weak scaling). Anything else would mix
another effect with that of more devices.
"""

from statistics import median

SAME = {"train": "training", "version": "code", "num_epochs": "epochs"}  # and the batch
MOST = 1.05  # efficiency: what is above is neither noise nor parallel work
PAIRS = 5  # of runs that took turns; a recorded speedup is the median of so many


def reference(row, measured) -> object:
    """The row among ``measured`` that the speedup of ``row`` refers to, if nobody chooses one.

    The comparable one on one device: one with the same batch before one with the same batch a
    device. On one device it is itself; None where several devices have none.
    """
    if row.trial.num_gpus == 1:
        return row

    def rank(base):
        weak, other_lr = scaling(row, base) == "weak", base.trial.lr != row.trial.lr
        return weak, other_lr, base.number

    alone = (base for base in measured if base.trial.num_gpus == 1)
    return min((base for base in alone if not differences(row, base)), key=rank, default=None)


def refer(row, base, pairs) -> None:
    """Give ``row`` its speedup over ``base``, or the remark why it has none."""
    differing = differences(row, base)
    ratios = ratios_of(row, base, pairs)
    if differing:
        row.remark = f"not comparable with row {base.number}: another {' and '.join(differing)}"
    elif not ratios:
        row.remark = f"fewer than {pairs} pairs of runs took turns"
    else:
        row.over = base.number
        row.ratios = ratios
        row.speedup = median(ratios)
        row.scaling = None if row is base else scaling(row, base)
        efficiency = row.speedup * base.trial.num_gpus / row.trial.num_gpus
        row.efficiency = None if row is base else efficiency
        if row.unsteady or base.unsteady:
            which = row.number if row.unsteady else base.number
            row.remark = f"the speed of row {which} was unsteady, run it again"
        elif efficiency > MOST and base.trial.num_gpus <= row.trial.num_gpus:
            row.remark = f"an efficiency above {MOST:.0%} over row {base.number} is not explained"


def differences(row, base) -> list[str]:
    """What keeps two rows from being comparable, in words; empty if they are."""
    trial, base_trial = row.trial, base.trial
    words = [
        word for name, word in SAME.items() if getattr(trial, name) != getattr(base_trial, name)
    ]
    return words if scaling(row, base) else [*words, "batch"]


def scaling(row, base) -> str | None:
    """'strong' for the same batch, 'weak' for the same batch a device; else None."""
    trial, base_trial = row.trial, base.trial
    if trial.batch_size == base_trial.batch_size:
        return "strong"
    same = trial.batch_size * base_trial.num_gpus == base_trial.batch_size * trial.num_gpus
    return "weak" if same else None


def ratios_of(row, base, pairs) -> tuple:
    """How many times as fast as ``base`` the row is; once, or once a round if there are enough."""
    if not pairs or row is base:
        return (row.samples_per_second.median / base.samples_per_second.median,)
    speeds, others = by_round(row), by_round(base)
    if speeds.keys() != others.keys() or len(speeds) < pairs:
        return ()
    return tuple(speed / others[number] for number, speed in speeds.items())


def by_round(row) -> dict:
    """Samples a second of each round of a record."""
    speeds = {trial.round: trial.samples_per_second for trial in row.trials}
    return {number: s for number, s in speeds.items() if None not in (number, s)}
