"""The collectives of a communication library as plans: broadcast, reduce, all_gather and so on.

Each is a `Schedule`, as an allreduce is, with what every rank holds before and gets from the call.
`execution.carry_out` does it, the figures draw it.
"""

from dataclasses import dataclass

from d2lmgpu.collectives.rounds import (
    Send,
    collect,
    cut,
    hand_out,
    pass_on,
    send_down,
    sum_up,
)
from d2lmgpu.collectives.schedules import ALGORITHMS, Schedule, check_devices, need


@dataclass(frozen=True)
class Collective:
    """One collective, by one algorithm, over the ranks of its schedule.

    Attributes
    ----------
    name, algorithm : str
    schedule : Schedule
    held, result : tuple of tuple of range
        Of each rank, which elements of its array mean something before, and which ones the call
        gives it: a range a part. All others are memory that is free.
    """

    name: str
    algorithm: str
    schedule: Schedule
    held: tuple[tuple[range, ...], ...]
    result: tuple[tuple[range, ...], ...]


COLLECTIVES = {}  # name -> {algorithm: function of k and n that makes a Collective}


def _algorithm(name: str, algorithm: str):
    """Register what plans the rounds of a collective; the function gives (size, held, result, …).

    The last one are the rounds, as those of an allreduce.
    """

    def register(make):
        def made(k, n):
            check_devices(k)
            need.whole("n", n, 0)
            size, held, result, rounds = make(k, n)
            schedule = Schedule.of(name, k, size, rounds)
            return Collective(name, algorithm, schedule, _by_rank(held), _by_rank(result))

        COLLECTIVES.setdefault(name, {})[algorithm] = made
        return make

    return register


def _by_rank(parts) -> tuple:
    return tuple(tuple(part for part in of if len(part)) for of in parts)


def _parts(k: int, n: int) -> list[range]:
    """The n elements in k parts."""
    cuts = cut(0, n, k)
    return [range(*cuts[i : i + 2]) for i in range(k)]


def _of_all(k: int, n: int) -> list:
    return [_parts(k, n)] * k


def _of_root(k: int, n: int) -> list:
    return [_parts(k, n), *[[]] * (k - 1)]


def _own(k: int, n: int) -> list:
    """Rank i has part i."""
    return [[part] for part in _parts(k, n)]


@_algorithm("broadcast", "tree")
def _broadcast_by_tree(k, n):
    return n, _of_root(k, n), _of_all(k, n), send_down(k, n)


@_algorithm("broadcast", "direct")
def _broadcast(k, n):
    return n, _of_root(k, n), _of_all(k, n), [hand_out(range(k), [0, n])]


@_algorithm("reduce", "tree")
def _reduce_by_tree(k, n):
    return n, _of_all(k, n), _of_root(k, n), sum_up(k, n)


@_algorithm("reduce", "direct")
def _reduce(k, n):
    return n, _of_all(k, n), _of_root(k, n), [collect(range(k), [0, n])]


def _all_reduce(algorithm):
    def make(k, n):
        return n, _of_all(k, n), _of_all(k, n), ALGORITHMS[algorithm](k, n).rounds

    return make


for algorithm in ("ring", "tree", "sharded", "naive"):  # those that need nobody but the ranks
    _algorithm("all_reduce", algorithm)(_all_reduce(algorithm))


@_algorithm("all_gather", "ring")
def _all_gather_by_ring(k, n):
    return n, _own(k, n), _of_all(k, n), pass_on(range(k), cut(0, n, k), 0, False)


@_algorithm("all_gather", "direct")
def _all_gather(k, n):
    return n, _own(k, n), _of_all(k, n), [hand_out(range(k), cut(0, n, k))]


@_algorithm("reduce_scatter", "ring")
def _reduce_scatter_by_ring(k, n):
    return n, _of_all(k, n), _own(k, n), pass_on(range(k), cut(0, n, k), -1, True)


@_algorithm("reduce_scatter", "direct")
def _reduce_scatter(k, n):
    return n, _of_all(k, n), _own(k, n), [collect(range(k), cut(0, n, k))]


@_algorithm("all_to_all", "direct")
def _all_to_all(k, n):
    """An array holds what all ranks send, one after another: k·n elements, of which a rank has n.

    So part j of rank i has a place of its own, to which nothing else is sent.
    """
    sent = [[range(i * n + p.start, i * n + p.stop) for p in _parts(k, n)] for i in range(k)]
    received = [[sent[i][j] for i in range(k)] for j in range(k)]
    sends = [
        Send(i, j, sent[i][j].start, sent[i][j].stop, False)
        for i in range(k)
        for j in range(k)
        if i != j
    ]
    return k * n, sent, received, [sends]


@_algorithm("send", "direct")
def _send(k, n):
    """Rank 0 sends all of its elements to rank 1. The others have nothing to do with it."""
    both = [_parts(k, n)] * min(k, 2) + [[]] * (k - 2)
    return n, _of_root(k, n), both, [[Send(0, 1, 0, n, False)]] if k > 1 else []


@_algorithm("barrier", "dissemination")
def _barrier(k, n):
    """Rank i tells rank i + 1, then i + 2, i + 4, …, of whom it knows that they have come.

    The dissemination barrier of Hensgen, Finkel and Manber, 1988: ⌈log2 k⌉ rounds. Part i is the
    word of rank i that it is there.
    """
    parts, rounds, known = _parts(k, n), [], 1
    while known < k:
        new = min(known, k - known)  # of what it knows, what the other does not
        rounds.append(
            [
                Send(i, (i + known) % k, part.start, part.stop, False)
                for i in range(k)
                for part in (parts[(i - back) % k] for back in range(new))
            ]
        )
        known += new
    return n, _own(k, n), _of_all(k, n), rounds


def collective(name: str, k: int, n: int, algorithm: str | None = None) -> Collective:
    """A collective of a communication library as a plan.

    Parameters
    ----------
    name : str
        A key of COLLECTIVES: broadcast, reduce, all_reduce, all_gather, reduce_scatter, all_to_all,
        send or barrier.
    k : int
        Ranks, from 1 to 1024.
    n : int
        Elements of a rank's tensor, of the larger one where the call takes two.
    algorithm : str, optional
        A key of ``COLLECTIVES[name]``; the first one without it.

    Returns
    -------
    Collective

    Raises
    ------
    CollectiveError
        For an unknown name or algorithm, and for another k or n.
    """
    need.choice("name", name, COLLECTIVES)
    by_algorithm = COLLECTIVES[name]
    algorithm = next(iter(by_algorithm)) if algorithm is None else algorithm
    need.choice("algorithm", algorithm, by_algorithm)
    return by_algorithm[algorithm](k, n)
