"""Keys and values that travel a ring of ranks, in two ways to deal out a sequence, round by round.

Who computes which pairs of chunks comes from the plan that the page on long sequences executes. The
script beside this file draws it. Without scripts words say what each rank computes, and how long
all of it takes.
"""

from d2lmgpu.collectives.ring_attention import contiguous, pairs, zigzag
from d2lmgpu.figures.checks import need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.machine.checks import is_whole

RANKS = (2, 3, 4)
ALGORITHMS = {"Contiguous": contiguous, "Zigzag": zigzag}


class RingAttention(Moving):
    """The rounds of ring attention, contiguous beside zigzag, on a clock that plays.

    Parameters
    ----------
    ranks : int
        How many ranks there are at first: 2 to 4.

    Raises
    ------
    FigureError
        For another number of ranks.
    """

    def __init__(self, ranks: int = 4):
        need(is_whole(ranks, min(RANKS), max(RANKS)), "ranks", ranks, "2, 3 or 4")
        self.plans = {
            k: {name: as_data(algorithm(k)) for name, algorithm in ALGORITHMS.items()}
            for k in RANKS
        }
        words = f"Ring attention over {ranks} ranks. " + " ".join(
            f"{name}: {plan['cost']}" for name, plan in self.plans[ranks].items()
        )
        about = (
            "Above, each rank with its chunks of queries and, below them, the keys and values that "
            "it has in this round. In the square, a row for each chunk of queries, in the colour "
            "of its rank, and a column for each chunk of keys: the number is the round in which "
            "the pair is computed. What is empty lies in the future, and is skipped."
        )
        super().__init__("context", {"ranks": ranks, "plans": self.plans}, words, about)


def as_data(held) -> dict:
    """One way to deal out a sequence, as the script draws and says it.

    `held` are the chunks of each rank, `rounds` of each round [rank, chunk of queries, chunk of
    keys]; `words` say it, before and after each round, and `cost` those for all rounds.
    """
    k = len(held)
    rounds = [
        [[rank, *pair] for rank in range(k) for pair in pairs(held, rank, step)]
        for step in range(k)
    ]
    return {
        "held": held,
        "rounds": rounds,
        "words": [_before(held), *(_round(k, step, done) for step, done in enumerate(rounds))],
        "cost": _cost(k, rounds),
    }


def _counts(k: int, done) -> list[int]:
    """How many pairs each rank computes."""
    ranks = [rank for rank, *_ in done]
    return [ranks.count(rank) for rank in range(k)]


def _before(held) -> str:
    return " ".join(
        f"Rank {rank} has chunks {' and '.join(map(str, chunks))}."
        for rank, chunks in enumerate(held)
    )


def _round(k: int, step: int, done) -> str:
    """What each rank has done in a round, and how long all wait for the busiest."""
    counts = _counts(k, done)
    pairs = ", ".join(
        f"rank {rank} {count or 'nothing'} with the keys of rank {(rank - step) % k}"
        for rank, count in enumerate(counts)
    )
    longest = f"The round takes as long as {max(counts)} pairs."
    return f"Round {step + 1}, pairs computed: {pairs}. {longest}"


def _cost(k: int, rounds) -> str:
    counts = _counts(k, [pair for done in rounds for pair in done])
    longest = sum(max(_counts(k, done)) for done in rounds)
    each = ", ".join(map(str, counts))
    return (
        f"Ranks 0 to {k - 1} compute {each} pairs of chunks; with all waiting for the busiest of "
        f"each round it takes as long as {longest} pairs."
    )
