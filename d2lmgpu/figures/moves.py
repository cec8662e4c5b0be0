"""The collectives, each before and after and round by round: in a notebook and in a built page.

What each rank holds is not drawn from a description: the plans of `collectives.operations` are
carried out, one round after another, on arrays in which every rank has a bit of its own. So a sum
tells by its bits whose numbers are in it. The script beside this file draws these states, and moves
what the plans send. Without scripts words show who holds what before and after.
"""

from dataclasses import replace

import numpy as np

from d2lmgpu.collectives.execution import carry_out
from d2lmgpu.collectives.operations import COLLECTIVES, Collective, collective
from d2lmgpu.figures.checks import need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.figures.style import number
from d2lmgpu.machine.checks import is_whole

RANKS = (2, 3, 4)  # each has a colour of its own, and a part of every tensor

# name -> PyTorch's call and what it does, of x before and after
CALLS = {
    "broadcast": ("dist.broadcast(x, src=0)", "Every rank gets what rank 0 has."),
    "reduce": (
        "dist.reduce(x, dst=0)",
        "Rank 0 gets the sum over all ranks. What the others are left with is no result.",
    ),
    "all_reduce": ("dist.all_reduce(x)", "Every rank gets the sum over all ranks."),
    "all_gather": (
        "dist.all_gather_into_tensor(out, x)",
        "Every rank gets the parts of all ranks, in the order of the ranks.",
    ),
    "reduce_scatter": (
        "dist.reduce_scatter_tensor(out, x)",
        "Each rank gets one part of the sum: rank 0 the first, rank 1 the second.",
    ),
    "all_to_all": (
        "dist.all_to_all_single(out, x)",
        "Each rank has a part for each rank, and gets one from each.",
    ),
    "send": (
        "dist.send(x, dst=1) on rank 0, dist.recv(x, src=0) on rank 1",
        "Rank 1 gets what rank 0 has. No other rank has to do with it.",
    ),
    "barrier": (
        "dist.barrier()",
        "No rank goes on before all have come: each hears it of every other one.",
    ),
}
LETTERS = "abcd"


class CollectiveExplorer(Moving):
    """Collectives of which the reader chooses one, and the number of ranks, and steps through it.

    Parameters
    ----------
    names : str
        Those that are offered, of `CALLS`, the first of which shows; all if none is named.
    ranks : int
        How many ranks there are at first: 2 to 4.

    Raises
    ------
    FigureError
        For other names and ranks.
    """

    def __init__(self, *names: str, ranks: int = 4):
        names = names or tuple(CALLS)
        for name in names:
            need.choice("a collective", name, CALLS)
        need(is_whole(ranks, min(RANKS), max(RANKS)), "ranks", ranks, "2, 3 or 4")
        plans = {
            name: {
                k: {
                    algorithm: as_data(collective(name, k, k, algorithm))
                    for algorithm in COLLECTIVES[name]
                }
                for k in RANKS
            }
            for name in names
        }
        first = plans[names[0]][ranks]
        words = f"{names[0]} over {ranks} ranks. " + " ".join(
            f"{when}: {' '.join(next(iter(first.values()))['words'][at])}"
            for when, at in (("Before", 0), ("After", -1))
        )
        data = {
            "collectives": {
                name: {"call": CALLS[name][0], "does": CALLS[name][1], "plans": plans[name]}
                for name in names
            },
            "ranks": ranks,
        }
        super().__init__("moves", data, words)


def states(wanted: Collective) -> list[np.ndarray]:
    """What each rank's array holds before a collective and after each of its rounds.

    Arrays of whole numbers (ranks, elements): bit r says that rank r's number is in the sum that is
    held there, 0 that nothing is. They come from carrying out the plan.
    """
    schedule = wanted.schedule
    held = [np.zeros(schedule.size, int) for _ in range(schedule.num_devices)]
    for rank, parts in enumerate(wanted.held):
        for part in parts:
            held[rank][part] = 1 << rank
    after = [np.stack(held)]
    for sends in schedule.rounds:
        carry_out(replace(schedule, rounds=(sends,)), held)
        after.append(np.stack(held))
    return after


def as_data(wanted: Collective) -> dict:
    """A collective over k ranks with k parts each, as the script draws and says it.

    A rank has k slots. `cells` are, at the start and after each round, of each rank and slot
    [text, bits of the ranks in it]; `moves` of each round [source, its slot, target, its slot];
    `result` of each rank the slots that the call gives; `words` and `sent` say it.
    """
    k = wanted.schedule.num_devices
    held = states(wanted)
    cells = [
        [[_cell(wanted, rank, slot, of[rank]) for slot in range(k)] for rank in range(k)]
        for of in held
    ]
    moves = [
        [
            [s.source, _slot(wanted, s.source, place), s.target, _slot(wanted, s.target, place)]
            for s in sends
            for place in range(s.start, s.stop)
        ]
        for sends in wanted.schedule.rounds
    ]
    result = [
        sorted(_slot(wanted, rank, place) for part in parts for place in part)
        for rank, parts in enumerate(wanted.result)
    ]
    everything = [[*range(k)]] * k
    last = len(cells) - 1
    return {
        "cells": cells,
        "moves": moves,
        "result": result,
        "words": [
            _holdings(of, result if at == last else everything) for at, of in enumerate(cells)
        ],
        "sent": [_sent(of, cells[at]) for at, of in enumerate(moves)],
        "cost": _cost(wanted),
    }


def _places(wanted: Collective, rank: int, slot: int) -> list[int]:
    """The elements that a slot shows, of which it shows the first that is held."""
    k = wanted.schedule.num_devices
    if wanted.schedule.size == k:
        return [slot]
    return [slot * k + rank, rank * k + slot]  # all_to_all: what has come, else what is to go


def _slot(wanted: Collective, rank: int, place: int) -> int:
    k = wanted.schedule.num_devices
    return next(slot for slot in range(k) if place in _places(wanted, rank, slot))


def _cell(wanted: Collective, rank: int, slot: int, held) -> list:
    places = _places(wanted, rank, slot)
    shown = next((place for place in places if held[place]), places[0])
    letter = "here" if wanted.name == "barrier" else LETTERS[shown % wanted.schedule.num_devices]
    return [letter, int(held[shown])]


def _sum(cell) -> str:
    """What a slot holds, as a sum: a0 + a2."""
    letter, bits = cell
    return " + ".join(f"{letter}{rank}" for rank in range(max(RANKS)) if bits >> rank & 1)


def _holdings(cells, result) -> list[str]:
    """A sentence a rank: what it holds, and what of that is no result."""
    sentences = []
    for rank, of in enumerate(cells):
        held = [(slot in result[rank], _sum(cell)) for slot, cell in enumerate(of) if cell[1]]
        meant = ", ".join(words for is_result, words in held if is_result)
        rest = ", ".join(words for is_result, words in held if not is_result)
        left = f"; left over: {rest}" if rest else ""
        sentences.append(f"Rank {rank}: {meant or 'nothing'}{left}.")
    return sentences


def _sent(moves, cells) -> str:
    """Who sends what to whom in a round, what goes the same way together."""
    by_source = {}
    for source, slot, target, _ in moves:
        targets = by_source.setdefault(source, {})
        targets.setdefault(target, []).append(_sum(cells[source][slot]))
    return "; ".join(
        f"rank {source} sends "
        + ", ".join(f"{_and(parts)} to rank {target}" for target, parts in targets.items())
        for source, targets in by_source.items()
    )


def _and(words) -> str:
    """A list in a sentence: a, b and c."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _cost(wanted: Collective) -> str:
    """Rounds, and what the busiest rank sends, in parts of a tensor with an element for each rank.

    A barrier sends no tensor.
    """
    schedule = wanted.schedule
    rounds = f"{schedule.num_rounds} round{'s' * (schedule.num_rounds != 1)}"
    if wanted.name == "barrier":
        return f"{rounds}."
    most = max(schedule.bytes_sent(1)) / schedule.num_devices
    return f"{rounds}; the rank that sends most sends {number(most)} times a whole tensor."
