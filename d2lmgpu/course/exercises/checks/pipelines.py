"""Pipelines"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.ranks import stage
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


def greedy(rank, p, m) -> list:
    """A forward pass whenever the rank may keep one more micro-batch, else a backward pass."""
    order, begun, ended = [], 0, 0
    while ended < m:
        if begun < m and begun - ended < p - rank:
            order.append(("F", begun))
            begun += 1
        else:
            order.append(("B", ended))
            ended += 1
    return order


@exercise(
    "one-f-one-b",
    "How many stages stand behind this rank? So many micro-batches it runs ahead. What does the "
    "last rank do?",
    "First min(p - 1 - rank, m) forward passes. Then one forward and one backward pass in turn, "
    "and in the end the backward passes that are left.",
)
def the_order_of_a_rank(order, g) -> str:
    """order(rank, p, m): the rank's operations, [("F", i), ("B", i), …]."""
    cases = [(rank, p, m) for p in (1, 2, 4) for m in (1, 3, 8) for rank in range(p)]
    more, many = (int(n) for n in g.integers(5, 9, 2))
    for rank, p, m in [*cases, (int(g.integers(more)), more, many)]:
        where = f"rank = {rank}, p = {p}, m = {m}"
        operations = _operations(order(rank, p, m), where)
        for kind in "FB":
            numbers = [i for of, i in operations if of == kind]
            if sorted(numbers) != [*range(m)]:
                raise Wrong("missing", f"{where}: each of {kind}0 to {kind}{m - 1} once.")
            if numbers != sorted(numbers):
                raise Wrong("sequence", f"{where}: micro-batches go in the order of their numbers.")
        in_flight, most, held = set(), p - rank, []
        for kind, i in operations:
            if kind == "B" and i not in in_flight:
                raise Wrong("before", f"{where}: B{i} stands before F{i}.")
            (in_flight.add if kind == "F" else in_flight.remove)(i)
            held.append(len(in_flight))
        if max(held) > min(most, m):
            raise Wrong(
                "kept", f"{where}: it keeps {max(held)} micro-batches, more than it has to."
            )
        if operations != greedy(rank, p, m):
            text = f"{where}: it waits for a gradient where it could run a forward pass."
            raise Wrong("late", text)
    return "Each rank runs ahead as far as it has to, and keeps no more."


def _operations(answer, where):
    """What an answer returned, as a list of (kind, number)."""
    if answer is None:
        raise Wrong("none", f"{where}: it returns None.")
    try:
        pairs = [(kind, int(i)) for kind, i in answer]
    except (TypeError, ValueError):
        raise Wrong("type", f'{where}: return a list of pairs ("F", i) and ("B", i).') from None
    if not all(kind in ("F", "B") for kind, _ in pairs):
        raise Wrong("type", f'{where}: a pair begins with "F" or "B".')
    return pairs


@exercise("one-f-one-b")
def the_stages_run_in_it(order, g) -> str:
    """order(rank, p, m), as four processes run it: each ends with the gradient of one device."""
    p, m = 4, 6
    orders = [
        _operations(order(rank, p, m), f"rank = {rank}, p = {p}, m = {m}") for rank in range(p)
    ]
    X, y = g.normal(size=(2, m, 3, 5))
    weights = g.normal(size=(p, 5, 5))
    ranks = in_processes(partial(stage, orders), [[X.copy(), y.copy(), w.copy()] for w in weights])
    inputs, into = X.reshape(-1, 5), [np.eye(5)]  # into[rank]: from the inputs to that stage
    for w in weights:
        into.append(into[-1] @ w)
    error, behind = inputs @ into[-1] - y.reshape(-1, 5), np.eye(5)
    for rank in reversed(range(p)):
        right = (inputs @ into[rank]).T @ error @ behind.T
        behind = weights[rank] @ behind
        answer = array(ranks.results[rank], f"The gradient of rank {rank}", right.shape)
        if (off := distance(answer, right)) > 1e-9:
            text = f"Run by {p} processes, the gradient of rank {rank} is {off:.1%} off."
            raise Wrong("gradient", text)
    return f"Run by {p} processes, all come to their end, with the gradients of one device."


def _data(g):
    """Inputs and weights of rank 0, targets and weights of rank 1: 3 micro-batches of 4."""
    X, y = g.normal(size=(3, 4, 5)), g.normal(size=(3, 4))
    return X, g.normal(size=(5, 2)), y, g.normal(size=2)


def _whole_batch(X, w, y, v):
    """Both gradients of the mean squared error over all examples, one after the other."""
    dw, dv = np.zeros_like(w), np.zeros_like(v)
    for x, target in zip(X.reshape(-1, X.shape[-1]), y.ravel(), strict=True):
        error = 2 * (x @ w @ v - target) / y.size
        dw += error * np.outer(x, v)
        dv += error * (x @ w)
    return dw, dv


def _two_stages(step, g):
    X, w, y, v = _data(g)
    ranks = in_processes(step, [[X.copy(), w.copy()], [y.copy(), v.copy()]])
    for rank, right in enumerate(_whole_batch(X, w, y, v)):
        answer = array(ranks.results[rank], f"What rank {rank} returns", right.shape)
        off = distance(answer, right)
        if off > 1e-9:
            text = f"The gradient of rank {rank} is {off:.1%} off."
            if distance(answer, len(X) * right) < 1e-9:
                raise Wrong("sum", f"{text} It is {len(X)} times what it should be.")
            raise Wrong("value", text)


@exercise(
    "micro-mean",
    "Let all micro-batches be equal. What is the gradient of the whole batch then, and what does "
    "the function return?",
    "The loss is the mean over all micro-batches, so each of them counts 1/m.",
)
def mean_over_micro_batches(step, g) -> str:
    """step(data, weights): the gradient of this rank's weights, on two ranks."""
    _two_stages(step, g)
    return "Both ranks have the gradient of the whole batch."


@exercise(
    "both-send",
    "Write down for both ranks what they send and receive, one below the other. In which line is "
    "rank 0 when rank 1 sends its first gradient?",
    "`dist.isend` does not wait: keep what it returns, with the tensor, and wait at the end.",
)
def nobody_waits(step, g) -> str:
    """step(data, weights): as 1F1B, and it ends."""
    _two_stages(step, g)
    return "Both ranks come to their end, with the right gradients."


def waiting_share(p, passes) -> float:
    """By letting so many passes, of one unit each, go through p ranks, each after the other."""
    ends = [0] * (p + 1)
    for _ in range(passes):
        for rank in range(p):
            ends[rank + 1] = max(ends[rank + 1], ends[rank] if rank else 0) + 1
    return 1 - passes / ends[p]


formula(
    "bubble",
    "How long does a step take, in micro-batches on one stage? How many of them does a rank "
    "compute?",
    "A rank computes m micro-batches on each of its v stages, and waits for p − 1 passes of one "
    "stage.",
    cases=lambda g: [
        (
            p := int(g.integers(2, 17)),
            int(g.integers(1, 40)) if v == 1 else p * int(g.integers(1, 6)),
            v,
        )
        for v in (1, 1, 2, 4)
    ],
    right=lambda p, m, v: waiting_share(p, m * v),
    slips={
        "of-the-rest": (
            lambda p, m, v: (p - 1) / (m * v),
            "That compares what is idle with what is busy. What is the share of the whole?",
        ),
        "one-more": (
            lambda p, m, v: p / (m * v + p),
            "The first rank has its first micro-batch at once.",
        ),
        "busy": (lambda p, m, v: m * v / (m * v + p - 1), "That is what is busy."),
        "stages": (
            lambda p, m, v: (p * v - 1) / (m + p * v - 1),
            "A rank has v of the stages, so it waits for fewer.",
        ),
    },
    what="The idle share",
    says="The bubble is right, with one stage on a rank and with several.",
)
