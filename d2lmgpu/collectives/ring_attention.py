"""Causal attention over a ring of ranks, as a plan: who computes what in which round.

A sequence is cut into chunks, as many for each rank. Queries stay with their rank; keys and values
go on to the next rank after each round, until each rank has seen those of all.
"""


def contiguous(n) -> list[list[int]]:
    """The numbers of each rank's two chunks of a sequence, as they follow each other.

    Defined in chapters/beyond/long-sequences.
    """
    return [[2 * rank, 2 * rank + 1] for rank in range(n)]


def zigzag(n) -> list[list]:
    """The numbers of each rank's two chunks of a sequence: one early, one late.

    Defined in chapters/beyond/long-sequences.
    """
    return [[rank, 2 * n - 1 - rank] for rank in range(n)]


def pairs(held, rank, step) -> list[tuple]:
    """What a rank computes in a round, number ``step`` from 0: (chunk of queries, chunk of keys).

    held: of each rank the numbers of its chunks. Keys that come after all queries of a chunk are
    skipped. Defined in chapters/beyond/long-sequences.
    """
    source = (rank - step) % len(held)
    return [(i, j) for i in held[rank] for j in held[source] if j <= i]
