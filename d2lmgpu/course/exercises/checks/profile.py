"""Where Does the Time Go?"""

from collections.abc import Iterator

import numpy as np

from d2lmgpu.course.exercises.formulas import formula


def needed(load, train) -> int:
    return -(-load // train)


def machines(g) -> Iterator[tuple[int, int, int, int]]:
    """Exact quotients and others, with cores enough, with too few, and with hardly any."""
    for ranks in (1, 2, 4, 8):
        train = int(g.integers(5, 30))
        for load in (3 * train, 3 * train - int(g.integers(1, train)), 4 * train + 1):
            spare = int(g.integers(0, ranks))
            for workers in (9, 2, 0):
                yield load, train, ranks, ranks * (1 + workers) + spare


formula(
    "workers",
    "One worker has a batch ready each `load` milliseconds, and n workers have n.",
    "Round up, and look at the cores: each rank needs one for itself before a worker gets one.",
    cases=lambda g: list(machines(g)),
    right=lambda load, train, ranks, cores: min(needed(load, train), (cores - ranks) // ranks),
    slips={
        "down": (
            lambda load, train, ranks, cores: min(load // train, (cores - ranks) // ranks),
            "Some of the batches come too late.",
        ),
        "one-more": (
            lambda load, train, ranks, cores: min(load // train + 1, (cores - ranks) // ranks),
            "Where the quotient is whole, one fewer is enough.",
        ),
        "cores": (
            lambda load, train, ranks, cores: min(needed(load, train), cores // ranks),
            "A rank needs a core for itself, too.",
        ),
        "unlimited": (
            lambda load, train, ranks, cores: needed(load, train),
            "There are not that many cores.",
        ),
    },
    what="The number of workers",
    says="The number of workers is right.",
)

formula(
    "shown",
    "An allreduce ends on all ranks together. When does it begin in each trace?",
    "A rank is in the allreduce from its own call on: it waits until the last rank has called, and "
    "then the exchange takes its time.",
    cases=lambda g: [(g.uniform(1, 9, k).tolist(), float(g.uniform(0.1, 2))) for k in (2, 3, 8)],
    right=lambda work, exchange: [max(work) - own + exchange for own in work],
    slips={
        "link": (
            lambda work, exchange: [exchange] * len(work),
            "That is what the link takes. Who comes early is in the call for longer.",
        ),
        "slowest": (
            lambda work, exchange: [own - min(work) + exchange for own in work],
            "The rank that works longest is the one that does not wait.",
        ),
        "wait": (
            lambda work, exchange: [max(work) - own for own in work],
            "That is the wait alone.",
        ),
    },
    what="The list of seconds",
    says="That is what each trace shows.",
)

formula(
    "slowest",
    "Rank 3 comes last to every exchange. How long does it wait there?",
    "Whoever waits least is the one for whom all others wait. Look at all steps, not at one.",
    cases=lambda g: [(g.uniform(0, 1, (k, 9)).tolist(),) for k in (2, 3, 4, 5, 6, 7, 8, 8)],
    right=lambda waits: min(range(len(waits)), key=lambda rank: sum(waits[rank])),
    slips={
        "waits": (lambda waits: np.argmax(np.sum(waits, axis=1)), "That one waits for others."),
        "first": (lambda waits: np.argmin(np.array(waits)[:, 0]), "One step is not all of them."),
    },
    what="The rank",
    says="That is the rank for whom the others wait.",
    sized=False,
)
