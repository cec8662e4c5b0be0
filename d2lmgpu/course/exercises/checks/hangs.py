"""When It Hangs"""

from collections import Counter
from functools import partial

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, exercise

NAMES = ["all_reduce", "all_gather", "broadcast", "barrier"]


def skipped(g) -> list[list]:
    """The same log on all ranks, but one has left a collective out."""
    k, n = int(g.integers(3, 7)), int(g.integers(4, 9))
    log = [NAMES[i % 4] for i in g.permutation(n)]
    odd, at = int(g.integers(0, k)), int(g.integers(0, n - 1))
    return [log[:at] + log[at + 1 :] if rank == odd else list(log) for rank in range(k)]


def first_difference(logs) -> list[int]:
    for step in range(max(map(len, logs))):
        names = [log[step] if step < len(log) else None for log in logs]
        usual = Counter(names).most_common(1)[0][0]
        strange = [rank for rank, name in enumerate(names) if name != usual]
        if strange:
            return [step, strange[0]]
    raise AssertionError("all logs are equal")


def against_rank_0(logs) -> list[int]:
    for step, name in enumerate(logs[0]):
        for rank, log in enumerate(logs):
            if step >= len(log) or log[step] != name:
                return [step, rank]
    return [len(logs[0]), 1]


formula(
    "first-difference",
    "Put the logs side by side and go down: in which line do not all say the same?",
    "In that line most ranks agree. A log that has ended says nothing, and that is a difference.",
    cases=lambda g: [(skipped(g),) for _ in range(12)],
    right=first_difference,
    slips={
        "end": (
            lambda logs: [min(map(len, logs)), int(np.argmin([len(log) for log in logs]))],
            "The ranks part before a log ends.",
        ),
        "rank-0": (against_rank_0, "Rank 0 can be the one that is wrong."),
    },
    what="The pair (step, rank)",
    says="There the ranks part, and that rank is the odd one.",
    sized=False,
)


@exercise(
    "agree",
    "Which rank leaves the loop first, and who then waits for it in `all_gather`?",
    "All ranks know the same `mean`, and none knows the others' `loss`. Go by what all know.",
)
def all_stop_together(train, g) -> str:
    """train(device, losses, limit): the step after which it stops, the same on all devices."""
    for k in (1, 2, 4):
        losses = np.sort(g.uniform(0, 2, (k, 8)), axis=1)[:, ::-1] + 0.01 * np.arange(k)[:, None]
        losses[0] -= 0.4  # the first rank would stop early
        limit = float(losses.mean(axis=0)[int(g.integers(3, 7))]) + 1e-6
        right = int(np.argmax(losses.mean(axis=0) < limit))
        exchange = together(train, k, losses.tolist(), [limit] * k)
        answers = [int(array(result, "The step", ())) for result in exchange.results]
        if len(set(answers)) > 1:
            raise Wrong("apart", f"On {k} devices the ranks stop at the steps {answers}.")
        if answers[0] != right:
            text = f"On {k} devices all stop at step {answers[0]}, and not where the mean falls"
            raise Wrong("value", f"{text} below the limit.")
    return "All ranks leave the loop in the same step."


def earliest(ends) -> int:
    """By going through the ends in the order of time."""
    for _, rank, code in sorted((seconds, rank, code) for rank, seconds, code in ends):
        if code not in (0, -15):
            return rank
    raise AssertionError("nobody failed")


def some_ends(g) -> list[tuple[int, float, int]]:
    k = int(g.integers(3, 8))
    codes = [int(g.choice([-9, 1, -11])), *g.choice([0, -15, 1], k - 1).tolist()]
    order, seconds = g.permutation(k), g.uniform(1, 60, k).round(1)
    return [(int(rank), float(seconds[i]), int(codes[rank])) for i, rank in enumerate(order)]


formula(
    "root-cause",
    "Which exit codes are no failure of their own? `torchrun` ends the others with −15.",
    "Leave out 0 and −15. Of what is left, the earliest.",
    cases=lambda g: [(some_ends(g),) for _ in range(16)],
    right=earliest,
    slips={
        "ended": (
            lambda ends: min((s, r) for r, s, code in ends if code)[1],
            "Somebody else has ended that one.",
        ),
        "last": (
            lambda ends: max((s, r) for r, s, code in ends if code not in (0, -15))[1],
            "That one failed after another.",
        ),
        "order": (
            lambda ends: next(r for r, s, code in ends if code not in (0, -15)),
            "The list is not in the order of time.",
        ),
    },
    what="The rank",
    says="That is the rank with which it began.",
    sized=False,
)


@exercise(
    "one-order",
    "Write the collectives of rank 0 in one column, those of rank 1 in another one. In which line "
    "do they differ?",
    "Every rank adds up first, and every rank takes part in the broadcast afterwards. Only what "
    "changes the rate stands under `if`.",
)
def all_in_one_order(end_of_epoch, g) -> str:
    """end_of_epoch(loss, rate, limit): on every rank [mean loss, rank 0's rate, perhaps halved]."""
    k, epochs = 3, 3
    rates = g.uniform(0.1, 1, (k, epochs))
    losses = 3 * g.integers(40, 60, (k, epochs)) / 256  # whose mean is exact, in whatever order
    losses[0] = np.array([30, 270, 270]) / 256  # below the mean, above it, above it
    means = losses.mean(axis=0)
    limits = means + np.array([-0.01, 0.01, 0])  # so that the rate is halved, is not, and is
    copies = [[losses[rank].copy(), rates[rank].copy()] for rank in range(k)]
    ranks = in_processes(partial(_epochs, end_of_epoch, limits.tolist()), copies)
    for epoch in range(epochs):
        pairs = [
            array(results[epoch], f"What rank {rank} returns", (2,))
            for rank, results in enumerate(ranks.results)
        ]
        _are_means([mean for mean, _ in pairs], losses[:, epoch], means[epoch])
        _are_one_rate([rate for _, rate in pairs], rates[0, epoch])
        rate, limit, old = pairs[0][1], limits[epoch], rates[0, epoch]
        if abs(rate - (old / 2 if means[epoch] >= limit else old)) > 1e-9:
            text = "All ranks have one rate, and it is not the right one."
            if abs(rate - (old / 2 if losses[0, epoch] >= limit else old)) < 1e-9:
                raise Wrong("decision", f"{text} It is halved by the loss of rank 0, not the mean.")
            raise Wrong("value", text)
    return "Three ranks end three epochs, with one mean loss and the rate of rank 0."


def _are_means(answers, losses, mean):
    """Wrong unless each rank has the mean of all ranks' losses."""
    for rank, answer in enumerate(answers):
        if abs(answer - mean) > 1e-9:
            text = f"The mean loss on rank {rank} is not right."
            if abs(answer - losses[rank]) < 1e-9:
                raise Wrong("own-loss", f"{text} It is its own loss.")
            if abs(answer - losses.sum()) < 1e-9:
                raise Wrong("sum", f"{text} The losses are added, and not averaged.")
            raise Wrong("value", text)


def _are_one_rate(rates, old):
    """Wrong unless all ranks have one rate; ``old``: rank 0's, before it was perhaps halved."""
    for rank, rate in enumerate(rates[1:], 1):
        if abs(rate - rates[0]) > 1e-9:
            text = f"Rank {rank} has another rate than rank 0."
            if abs(rate - old) < 1e-9:
                raise Wrong("late", f"{text} It got that of before it was halved.")
            raise Wrong("apart", text)


def _epochs(end_of_epoch, limits, losses, rates):
    """In a rank: the ends of some epochs, one after the other."""
    return [
        end_of_epoch(loss.clone(), rate.clone(), limit)
        for loss, rate, limit in zip(losses, rates, limits)
    ]
