"""Experts"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "there-and-back",
    "Which rows go to rank 2? In which order will their results come back?",
    "`X[chosen == rank]` goes to a rank, and `Y[chosen == rank] = ...` puts what it sends back "
    "into its places. Send everything before you receive.",
)
def like_one_device(layer, g) -> str:
    """layer(device, X, chosen, expert): what the chosen experts make of the rows of X."""
    for k in (1, 2, 4):
        weights = g.normal(size=(k, 3, 3))
        tokens = [int(n) for n in g.integers(3, 9, size=k)]
        X = [g.normal(size=(n, 3)) for n in tokens]
        chosen = [g.integers(0, k, size=n) for n in tokens]
        chosen[0][:] = k - 1  # to one rank all, to others nothing

        experts = [partial(_expert, weights[rank], rank) for rank in range(k)]
        exchange = together(layer, k, [x.copy() for x in X], [c.copy() for c in chosen], experts)
        for rank, result in enumerate(exchange.results):
            rows = zip(X[rank], chosen[rank])
            right = np.concatenate([experts[to](row[None]) for row, to in rows])
            answer = array(result, f"What device {rank} returns", right.shape)
            off = distance(answer, right)
            if off > 1e-9:
                text = f"On {k} devices what device {rank} returns is {off:.1%} off."
                if k > 1 and distance(answer, experts[rank](X[rank])) < 1e-9:
                    raise Wrong("local", f"{text} All its tokens went through its own expert.")
                if sorted(answer.ravel().round(9)) == sorted(right.ravel().round(9)):
                    raise Wrong("order", f"{text} The rows are right, but not in their places.")
                raise Wrong("value", text)
        for rank, sent in enumerate(exchange.sent):
            leaving = sum((to != rank).sum() for to in chosen[rank])
            guests = sum((chosen[other] == rank).sum() for other in range(k) if other != rank)
            allowed = 8 * 3 * int(leaving + guests)
            if sent > allowed:
                text = f"On {k} devices device {rank} sends {sent} bytes; {allowed} are enough."
                raise Wrong("bytes", text)
    return "The results are those of one device, and each token travelled to its expert only."


def _expert(weights, number, rows):
    return np.tanh(np.asarray(rows).reshape(-1, 3) @ weights) + number


@exercise(
    "return-order",
    "Which rank's rows come back first? At which places of x were they?",
    "`x[order]` has at place i what was at `order[i]`. The way back is the permutation that undoes "
    "it: that of `order.argsort()`.",
)
def in_their_places(layer, g) -> str:
    """layer(x, chosen): x times (chosen + 1), by way of the ranks."""
    n = 3
    x, chosen = g.normal(size=(n, 8, 3)), g.integers(0, n, size=(n, 8))
    chosen[:, :3] = n - 1, n - 1, 0  # so that nobody's order undoes itself
    ranks = in_processes(layer, [[x[r].copy(), chosen[r].copy()] for r in range(n)])
    for rank, answer in enumerate(ranks.results):
        right = x[rank] * (chosen[rank] + 1)[:, None]
        answer = array(answer, f"What rank {rank} returns", right.shape)
        off = distance(answer, right)
        if off > 1e-9:
            text = f"With {n} processes what rank {rank} returns is {off:.1%} off."
            order = np.argsort(chosen[rank], kind="stable")
            if distance(answer, right[order][order]) < 1e-9:
                raise Wrong("order", f"{text} The rows are right, but not in their places.")
            if distance(answer, right[order]) < 1e-9:
                raise Wrong("sorted", f"{text} The rows are in the order of their experts.")
            if distance(answer, x[rank] * (rank + 1)) < 1e-9:
                raise Wrong("local", f"{text} All its rows went through its own expert.")
            raise Wrong("value", text)
    return "Each row has been at its expert, and is back in its place."


def turned_away(load, factor) -> int:
    """One token after the other: is there still a place?"""
    free = {expert: int(factor * sum(load) / len(load)) for expert in range(len(load))}
    away = 0
    for expert, tokens in enumerate(load):
        for _ in range(tokens):
            if free[expert]:
                free[expert] -= 1
            else:
                away += 1
    return away


formula(
    "dropped",
    "How many tokens would each expert get if all got the same? How many may it take?",
    "What an expert has too few does not help one that has too many: count each expert by itself.",
    cases=lambda g: [
        ([int(n) for n in g.integers(0, 400, size=experts)], factor)
        for experts in (4, 8, 16)
        for factor in (1.0, 1.25, 2.0)
    ],
    right=turned_away,
    slips={
        "even": (
            lambda load, factor: sum(max(0, n - int(sum(load) / len(load))) for n in load),
            "That is with a capacity factor of 1.",
        ),
        "net": (
            lambda load, factor: max(
                0, sum(load) - len(load) * int(factor * sum(load) / len(load))
            ),
            "Free places of one expert are no places of another one.",
        ),
        "busiest": (
            lambda load, factor: max(0, max(load) - int(factor * sum(load) / len(load))),
            "The busiest expert is not the only one.",
        ),
    },
    what="The number of tokens",
    says="The dropped tokens are counted right.",
)
