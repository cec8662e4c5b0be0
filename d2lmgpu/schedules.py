"""Allreduce as a plan: who sends which elements to whom, round by round.

A schedule is made from two numbers, how many devices there are and how many elements each of them
holds, before any data moves. `d2lmgpu.collectives` carries it out on arrays; `d2lmgpu.costmodel`
puts a time on it. Bytes and rounds are counted from the very sends that are carried out.

All sends of one round happen at once, so no round reads an element that the same round writes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import index


class CollectiveError(ValueError):
    """A collective was asked for something that it cannot do."""


@dataclass(frozen=True)
class Send:
    """Elements [start, stop) of node `source` travel to node `target`, same place.

    There they are added to what is held (`add`) or replace it.
    """

    source: int
    target: int
    start: int
    stop: int
    add: bool

    def __len__(self):
        return self.stop - self.start


@dataclass(frozen=True)
class Schedule:
    """An allreduce of `size` elements over `num_devices` devices.

    Devices are nodes 0 to num_devices - 1; the host, where there is one, is node num_devices.
    """

    algorithm: str
    num_devices: int
    size: int
    rounds: tuple[tuple[Send, ...], ...]

    @property
    def num_rounds(self) -> int:
        return len(self.rounds)

    @property
    def num_nodes(self) -> int:
        """How many nodes take part: the devices and perhaps the host."""
        return self.num_devices + (self.algorithm == "host")

    def bytes_per_link(self, itemsize: int = 4) -> dict[tuple[int, int], int]:
        """Bytes over each link (source, target) that is used; `itemsize` is bytes per element."""
        links = Counter()
        for send in self._sends():
            links[send.source, send.target] += len(send) * itemsize
        return dict(links)

    def bytes_sent(self, itemsize: int = 4) -> list[int]:
        """Bytes that leave each node."""
        return self._bytes("source", itemsize)

    def bytes_received(self, itemsize: int = 4) -> list[int]:
        """Bytes that reach each node."""
        return self._bytes("target", itemsize)

    def busiest_port(self, itemsize: int = 4) -> list[int]:
        """Per round, the most bytes that one node sends or one node receives.

        Links are full duplex: sending and receiving do not wait for each other.
        """
        most = []
        for sends in self.rounds:
            ports = Counter()
            for send in sends:
                ports["out", send.source] += len(send) * itemsize
                ports["in", send.target] += len(send) * itemsize
            most.append(max(ports.values()))
        return most

    def _sends(self) -> Iterable[Send]:
        return chain.from_iterable(self.rounds)

    def _bytes(self, end: str, itemsize: int) -> list[int]:
        total = [0] * self.num_nodes
        for send in self._sends():
            total[getattr(send, end)] += len(send) * itemsize
        return total


def naive(k: int, n: int) -> Schedule:
    """Everybody sends everything to device 0, which sends the sum back.

    2 rounds. Device 0 receives (k-1)·n elements and sends (k-1)·n.
    """
    others = range(1, k)
    gather = [Send(i, 0, 0, n, True) for i in others]
    return _schedule("naive", k, n, [gather, [Send(0, i, 0, n, False) for i in others]])


def host(k: int, n: int) -> Schedule:
    """As `naive`, but the host (node k) adds: k·n elements into it and k·n out of it. 2 rounds."""
    gather = [Send(i, k, 0, n, i > 0) for i in range(k)]
    return _schedule("host", k, n, [gather, [Send(k, i, 0, n, False) for i in range(k)]])


def sharded(k: int, n: int) -> Schedule:
    """The sharded parameter server: device j adds up the j-th part, then sends it to everybody.

    2 rounds. A device receives and sends at most 2(k-1)·⌈n/k⌉ elements, on all links at once.
    """
    cuts = _cuts(0, n, k)
    return _schedule("sharded", k, n, [_collect(range(k), cuts), _hand_out(range(k), cuts)])


def tree(k: int, n: int) -> Schedule:
    """Pairs add up, then pairs of pairs; the sum comes down the same (binomial) tree.

    2⌈log2 k⌉ rounds. A device sends and receives at most (⌈log2 k⌉ + 1)·n elements.
    """
    up, step = [], 1
    while step < k:
        up.append([(i + step, i) for i in range(0, k - step, 2 * step)])
        step *= 2
    gather = [[Send(child, parent, 0, n, True) for child, parent in pairs] for pairs in up]
    back = [[Send(parent, child, 0, n, False) for child, parent in pairs] for pairs in up[::-1]]
    return _schedule("tree", k, n, gather + back)


def ring(k: int, n: int) -> Schedule:
    """Each device sends one k-th at a time to the next one in the ring (Patarasuk and Yuan 2009).

    2(k-1) rounds. A device sends and receives at most ⌈2(k-1)/k·n⌉ elements: almost independent
    of k, and no algorithm can do with less.
    """
    return _schedule("ring", k, n, _ring(range(k), 0, n))


def hierarchical(k: int, n: int, per_machine: int = 4) -> Schedule:
    """Sharded inside each machine, rings between machines, sharded again.

    The k devices sit in m = ⌈k / per_machine⌉ machines, as evenly as possible. 2(m-1) + 2 rounds.
    A machine sends at most about 2(m-1)/m·n elements to others, whatever the number of its devices.
    """
    if index(per_machine) < 1:
        raise CollectiveError(f"per_machine is {per_machine}; it must be at least 1.")
    groups = machines(k, per_machine)
    owners = min(map(len, groups))
    cuts = _cuts(0, n, owners)
    collect = [_collect(group, cuts) for group in groups]
    rings = [_ring([group[j] for group in groups], *cuts[j : j + 2]) for j in range(owners)]
    hand_out = [_hand_out(group, cuts) for group in groups]
    together = [collect, *zip(*rings, strict=True), hand_out]
    return _schedule("hierarchical", k, n, [chain.from_iterable(part) for part in together])


def machines(k: int, per_machine: int) -> list[range]:
    """The k devices in ⌈k / per_machine⌉ machines, as evenly as possible."""
    m = -(-k // per_machine)
    cuts = _cuts(0, k, m)
    return [range(*cuts[i : i + 2]) for i in range(m)]


ALGORITHMS = {f.__name__: f for f in (naive, host, sharded, tree, ring, hierarchical)}


def plan(algorithm: str, k: int, n: int, **options) -> Schedule:
    """The schedule of `algorithm` (a key of ALGORITHMS) for k devices with n elements each.

    Raises CollectiveError for an unknown algorithm, k < 1 or n < 0.
    """
    if algorithm not in ALGORITHMS:
        raise CollectiveError(f"No algorithm {algorithm!r}; choose from {', '.join(ALGORITHMS)}.")
    if index(k) < 1:
        raise CollectiveError(f"An allreduce over k = {k} devices; k must be at least 1.")
    if index(n) < 0:
        raise CollectiveError(f"An allreduce of n = {n} elements; n must be at least 0.")
    return ALGORITHMS[algorithm](k, n, **options)


def _schedule(algorithm, k, n, rounds) -> Schedule:
    """Drop what moves nothing: empty sends, and rounds without any."""
    kept = (tuple(send for send in sends if len(send)) for sends in rounds)
    return Schedule(algorithm, k, n, tuple(sends for sends in kept if sends))


def _cuts(start: int, stop: int, k: int) -> list[int]:
    """k + 1 positions that cut [start, stop) in k parts.

    The larger parts are spread out: with the large ones first, two small neighbours would make a
    device of the ring send one element more than ⌈2(k-1)/k·n⌉.
    """
    return [start + i * (stop - start) // k for i in range(k + 1)]


def _collect(members, cuts) -> list[Send]:
    """Part j of everybody is added up on member j."""
    return [
        Send(i, members[j], *cuts[j : j + 2], True)
        for j in range(len(cuts) - 1)
        for i in members
        if i != members[j]
    ]


def _hand_out(members, cuts) -> list[Send]:
    """Part j goes from member j to everybody."""
    return [Send(s.target, s.source, s.start, s.stop, False) for s in _collect(members, cuts)]


def _ring(members, start: int, stop: int) -> list[list[Send]]:
    """k - 1 rounds in which sums grow as they travel, then k - 1 in which they are passed on."""
    k = len(members)
    cuts = _cuts(start, stop, k)
    rounds = []
    for step in range(2 * (k - 1)):
        add = step < k - 1
        parts = [(i - step) % k if add else (i + 1 - (step - k + 1)) % k for i in range(k)]
        to_next = zip(members, [*members[1:], members[0]], parts, strict=True)
        rounds.append([Send(i, j, *cuts[part : part + 2], add) for i, j, part in to_next])
    return rounds
