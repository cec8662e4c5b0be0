"""What plans are put together from: a send, and rounds of them that several algorithms have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Send:
    """Elements [start, stop) of one node travel to another, same place.

    Attributes
    ----------
    source, target : int
        The nodes.
    start, stop : int
    add : bool
        Whether they are added to what the target holds; else they replace it.
    """

    source: int
    target: int
    start: int
    stop: int
    add: bool

    def __len__(self):
        return self.stop - self.start


def cut(start: int, stop: int, k: int) -> list[int]:
    """k + 1 positions that cut [start, stop) in k pieces.

    The larger ones are spread out: with the large ones first, two small neighbours would make a
    device of the ring send one element more than ⌈2(k-1)/k·n⌉.
    """
    return [start + i * (stop - start) // k for i in range(k + 1)]


def collect(members, cuts) -> list[Send]:
    """Part j of everybody is added up on member j."""
    return [
        Send(i, members[j], *cuts[j : j + 2], True)
        for j in range(len(cuts) - 1)
        for i in members
        if i != members[j]
    ]


def hand_out(members, cuts) -> list[Send]:
    """Part j goes from member j to everybody."""
    return [Send(s.target, s.source, s.start, s.stop, False) for s in collect(members, cuts)]


def pass_on(members, cuts, ahead: int, add: bool) -> list[list[Send]]:
    """k - 1 rounds of a ring: member i sends part i + ahead, then what has come to it.

    After them member i has received part i + ahead + 1 last: a sum of all, if they add.
    """
    k = len(members)
    rounds = []
    for step in range(k - 1):
        pieces = [(i + ahead - step) % k for i in range(k)]
        to_next = zip(members, [*members[1:], members[0]], pieces, strict=True)
        rounds.append([Send(i, j, *cuts[piece : piece + 2], add) for i, j, piece in to_next])
    return rounds


def sum_up(k: int, n: int) -> list[list[Send]]:
    """Everything is added up on device 0, along a tree."""
    return [[Send(child, parent, 0, n, True) for child, parent in pairs] for pairs in _pairs(k)]


def send_down(k: int, n: int) -> list[list[Send]]:
    """Everything comes from device 0 to all, down the same tree."""
    down = _pairs(k)[::-1]
    return [[Send(parent, child, 0, n, False) for child, parent in pairs] for pairs in down]


def _pairs(k: int) -> list[list[tuple[int, int]]]:
    """Round by round (child, parent) of a binomial tree whose root is device 0."""
    pairs, step = [], 1
    while step < k:
        pairs.append([(i + step, i) for i in range(0, k - step, 2 * step)])
        step *= 2
    return pairs
