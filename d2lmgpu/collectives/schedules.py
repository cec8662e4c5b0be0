"""Allreduce as a plan: who sends which elements to whom, round by round.

A schedule is made from two numbers, how many devices there are and how many elements each of them
holds, before any data moves. `execution` runs it on arrays; the cost model puts a time on it.
Bytes and rounds are counted from the very sends that are run.

All sends of one round happen at once, so no round reads an element that the same round writes.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from itertools import chain
from operator import attrgetter

from d2lmgpu.collectives.rounds import (
    Send,
    collect,
    cut,
    hand_out,
    pass_on,
    send_down,
    sum_up,
)
from d2lmgpu.machine.checks import Need, is_whole

MOST_DEVICES = 1024  # a ring of so many has two million sends


class CollectiveError(ValueError):
    """A collective was asked for something that it cannot do."""


need = Need(CollectiveError)


def check_devices(k) -> None:
    """CollectiveError unless `k` is a number of devices that can be planned for."""
    need(is_whole(k, 1, MOST_DEVICES), "k", k, f"a number of devices from 1 to {MOST_DEVICES}")


@dataclass(frozen=True)
class Schedule:
    """A collective, such as an allreduce, as a plan.

    Devices are nodes 0 to num_devices - 1; the host, where there is one, is node num_devices.

    Attributes
    ----------
    algorithm : str
    num_devices : int
    size : int
        Elements of each device's array.
    rounds : tuple of tuple of Send
        All sends of one round happen at once.
    """

    algorithm: str
    num_devices: int
    size: int
    rounds: tuple[tuple[Send, ...], ...]

    @classmethod
    def of(cls, algorithm: str, k: int, n: int, rounds) -> "Schedule":
        """That of these rounds: sends of no elements, and rounds without a send, are none.

        Parameters
        ----------
        algorithm : str
        k : int
            Devices.
        n : int
            Elements of each device's array.
        rounds : iterable of iterable of Send

        Returns
        -------
        Schedule
        """
        moving = (tuple(send for send in sends if len(send)) for sends in rounds)
        return cls(algorithm, k, n, tuple(sends for sends in moving if sends))

    @property
    def num_rounds(self) -> int:
        """How many rounds there are; each costs a latency."""
        return len(self.rounds)

    @property
    def num_nodes(self) -> int:
        """How many nodes take part, the devices and perhaps the host."""
        return self.num_devices + (self.algorithm == "host")

    def bytes_per_link(self, itemsize: int = 4) -> dict[tuple[int, int], int]:
        """Bytes over each link that is used.

        Parameters
        ----------
        itemsize : int
            Bytes of an element.

        Returns
        -------
        dict
            (source, target) -> bytes.

        Raises
        ------
        CollectiveError
            For an ``itemsize`` below 1.
        """
        return dict(_bytes(chain.from_iterable(self.rounds), itemsize, "source", "target"))

    def bytes_sent(self, itemsize: int = 4) -> list[int]:
        """Bytes that leave each node.

        Parameters
        ----------
        itemsize : int
            Bytes of an element.

        Returns
        -------
        list of int
            One entry a node.

        Raises
        ------
        CollectiveError
            For an ``itemsize`` below 1.
        """
        sent = _bytes(chain.from_iterable(self.rounds), itemsize, "source")
        return [sent[node] for node in range(self.num_nodes)]

    def bytes_received(self, itemsize: int = 4) -> list[int]:
        """Bytes that reach each node.

        Parameters
        ----------
        itemsize : int
            Bytes of an element.

        Returns
        -------
        list of int
            One entry a node.

        Raises
        ------
        CollectiveError
            For an ``itemsize`` below 1.
        """
        received = _bytes(chain.from_iterable(self.rounds), itemsize, "target")
        return [received[node] for node in range(self.num_nodes)]

    def busiest_port(self, itemsize: int = 4) -> list[int]:
        """Per round, the most bytes that one node sends or one node receives.

        Links are full duplex: sending and receiving do not wait for each other.

        Parameters
        ----------
        itemsize : int
            Bytes of an element.

        Returns
        -------
        list of int
            One entry a round.

        Raises
        ------
        CollectiveError
            For an ``itemsize`` below 1.
        """
        return [
            max(max(_bytes(sends, itemsize, end).values()) for end in ("source", "target"))
            for sends in self.rounds
        ]


def _bytes(sends, itemsize: int, *ends: str) -> Counter:
    """Bytes of the `sends`, added up by their source, their target or both."""
    need.whole("itemsize", itemsize)
    total, key = Counter(), attrgetter(*ends)
    for send in sends:
        total[key(send)] += len(send) * itemsize
    return total


ALGORITHMS = {}


def algorithm(rounds) -> Callable:
    """Register what plans the rounds over k ≥ 1 devices with n ≥ 0 elements; makes a Schedule."""

    @wraps(rounds)
    def make(k, n, **options):
        check_devices(k)
        need.whole("n", n, 0)
        return Schedule.of(rounds.__name__, k, n, rounds(k, n, **options))

    ALGORITHMS[rounds.__name__] = make
    return make


@algorithm
def naive(k: int, n: int) -> list[list[Send]]:
    """Everybody sends everything to device 0, which sends the sum back.

    2 rounds. Device 0 receives (k-1)·n elements and sends (k-1)·n.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n.
    """
    return [collect(range(k), [0, n]), hand_out(range(k), [0, n])]


@algorithm
def host(k: int, n: int) -> list[list[Send]]:
    """As ``naive``, but the host (node k) adds: k·n elements into it and k·n out of it. 2 rounds.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n.
    """
    gather = [Send(i, k, 0, n, i > 0) for i in range(k)]
    return [gather, [Send(k, i, 0, n, False) for i in range(k)]]


@algorithm
def sharded(k: int, n: int) -> list[list[Send]]:
    """The sharded parameter server: device j adds up the j-th part, then sends it to everybody.

    2 rounds. A device receives and sends at most 2(k-1)·⌈n/k⌉ elements, on all links at once.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n.

    References
    ----------
    Li et al. (2014). Scaling Distributed Machine Learning with the Parameter Server. OSDI.
    """
    cuts = cut(0, n, k)
    return [collect(range(k), cuts), hand_out(range(k), cuts)]


@algorithm
def tree(k: int, n: int) -> list[list[Send]]:
    """Pairs add up, then pairs of pairs; the sum comes down the same (binomial) tree.

    2⌈log2 k⌉ rounds. A device sends and receives at most (⌈log2 k⌉ + 1)·n elements.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n.
    """
    return sum_up(k, n) + send_down(k, n)


@algorithm
def ring(k: int, n: int) -> list[list[Send]]:
    """Each device sends one k-th at a time to the next one in the ring.

    2(k-1) rounds. A device sends and receives at most ⌈2(k-1)/k·n⌉ elements: almost independent
    of k, and no algorithm can do with less.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n.

    References
    ----------
    Patarasuk and Yuan (2009). Bandwidth Optimal All-Reduce Algorithms for Clusters of Workstations.
    Journal of Parallel and Distributed Computing 69(2).
    """
    return _ring(range(k), 0, n)


@algorithm
def hierarchical(k: int, n: int, per_machine: int = 4) -> list[chain]:
    """Sharded inside each machine, rings between machines, sharded again.

    The k devices sit in m = ⌈k / per_machine⌉ machines, as evenly as possible. 2(m-1) + 2 rounds.
    A machine sends at most about 2(m-1)/m·n elements to others, whatever the number of its devices.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.
    per_machine : int
        The most devices that a machine has.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For another k or n, and for a ``per_machine`` below 1.
    """
    groups = machines(k, per_machine)
    owners = min(map(len, groups))
    cuts = cut(0, n, owners)
    collected = [collect(group, cuts) for group in groups]
    rings = [_ring([group[j] for group in groups], *cuts[j : j + 2]) for j in range(owners)]
    handed_out = [hand_out(group, cuts) for group in groups]
    together = [collected, *zip(*rings, strict=True), handed_out]
    return [chain.from_iterable(sends) for sends in together]


def machines(k: int, per_machine: int) -> list[range]:
    """The k devices in ⌈k / per_machine⌉ machines, as evenly as possible.

    Parameters
    ----------
    k : int
        Devices, from 1 to 1024.
    per_machine : int
        The most devices that a machine has.

    Returns
    -------
    list of range
        The devices of each machine.

    Raises
    ------
    CollectiveError
        For another k, and for a ``per_machine`` below 1.
    """
    check_devices(k)
    need.whole("per_machine", per_machine)
    m = -(-k // per_machine)
    cuts = cut(0, k, m)
    return [range(*cuts[i : i + 2]) for i in range(m)]


def plan(algorithm: str, k: int, n: int, **options) -> Schedule:
    """The schedule of an allreduce, by the algorithm's name.

    Parameters
    ----------
    algorithm : str
        A key of ALGORITHMS: naive, host, sharded, tree, ring or hierarchical.
    k : int
        Devices, from 1 to 1024.
    n : int
        Elements that each of them holds, from 0 up.
    **options : int
        Of the algorithm: ``hierarchical`` takes ``per_machine``.

    Returns
    -------
    Schedule

    Raises
    ------
    CollectiveError
        For an unknown algorithm, an option that it lacks, and another k or n.
    """
    need.choice("algorithm", algorithm, ALGORITHMS)
    make = ALGORITHMS[algorithm]
    unknown = sorted(options.keys() - signature(make).parameters.keys())
    need(not unknown, f"What {algorithm} lacks", unknown, "only options that it has")
    return make(k, n, **options)


def _ring(members, start: int, stop: int) -> list[list[Send]]:
    """k - 1 rounds in which sums grow as they travel, then k - 1 in which they are passed on."""
    cuts = cut(start, stop, len(members))
    return [*pass_on(members, cuts, 0, True), *pass_on(members, cuts, 1, False)]
