"""Reading a Trace."""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula


def innermost(spans) -> list[int]:
    """Second by second: whose is it? The one that began last."""
    own = [0] * len(spans)
    for now in range(max(end for _, end in spans)):
        open_ones = [i for i, (start, end) in enumerate(spans) if start <= now < end]
        if open_ones:
            own[max(open_ones, key=lambda i: (spans[i][0], -spans[i][1]))] += 1
    return own


def nested(g) -> list:
    """Spans of one thread: each second level inside a first, each third inside a second."""
    spans, now = [], 0
    for both_end in (False, True, False):
        a, b, c, d, e = np.cumsum(g.integers(1, 9, 5)).tolist()
        c = d if both_end else c
        spans += [(now, now + e + 2), (now + a, now + d), (now + b, now + c)]
        now += e + 3
    return [spans[i] for i in g.permutation(len(spans))]


formula(
    "self-time",
    "A span's own time is its length less what is directly inside of it. What is inside of *that* "
    "has been taken off already.",
    "Add up the lengths of all spans inside, and take off again what lies inside of those. Or go "
    "second by second: it belongs to the span that began last.",
    cases=lambda g: [(nested(g),) for _ in range(3)],
    right=innermost,
    slips={
        "total": (lambda spans: [b - a for a, b in spans], "These are total times."),
        "twice": (
            lambda spans: [
                b - a - sum(d - c for c, d in spans if a < c and d <= b) for a, b in spans
            ],
            "What is two levels down has been taken off twice.",
        ),
    },
    what="The list of self times",
    says="The self times are right, and add up to the whole.",
)


def seconds_of(spans) -> set[int]:
    return {second for start, end in spans for second in range(start, end)}


def some_spans(g, n) -> list[tuple[int, int]]:
    starts = g.integers(0, 40, n)
    return [(int(start), int(start + length)) for start, length in zip(starts, g.integers(4, 9, n))]


def apart(g) -> list[tuple[int, int]]:
    return [(10 * i, 10 * i + int(g.integers(2, 9))) for i in range(4)]


def covered(compute, exchange) -> list[int]:
    return [max(0, min(b, d) - max(a, c)) for a, b in exchange for c, d in compute]


formula(
    "hidden",
    "Computing may go on twice at once. Which seconds of the exchange have any computing beside "
    "them?",
    "Times are whole seconds: make two sets of seconds, and intersect them.",
    cases=lambda g: [(some_spans(g, n), apart(g)) for n in (1, 3, 6)],
    right=lambda compute, exchange: (
        len(seconds_of(compute) & seconds_of(exchange)) / len(seconds_of(exchange))
    ),
    slips={
        "twice": (
            lambda compute, exchange: (
                sum(covered(compute, exchange)) / sum(b - a for a, b in exchange)
            ),
            "A second with two computations beside it is hidden once.",
        ),
        "shown": (
            lambda compute, exchange: (
                len(seconds_of(exchange) - seconds_of(compute)) / len(seconds_of(exchange))
            ),
            "That is what is left to see.",
        ),
    },
    what="The share",
    says="The share of the exchange that is hidden is right.",
)


def later(starts, bases, ahead) -> list[list]:
    return [
        [start + ahead(base, bases[0]) for start in own]
        for own, base in zip(starts, bases, strict=True)
    ]


formula(
    "one-clock",
    "A base is in nanoseconds, and a start in microseconds. What is the difference of two bases?",
    "A rank whose base is later has started its clock later: the same start is a later moment. And "
    "a microsecond has a thousand nanoseconds.",
    cases=lambda g: [
        (g.uniform(0, 900, (k, 4)).tolist(), g.integers(10**6, 2 * 10**6, k).tolist())
        for k in (2, 3, 5)
    ],
    right=lambda starts, bases: later(starts, bases, lambda own, first: (own - first) / 1000),
    slips={
        "nanoseconds": (
            lambda starts, bases: later(starts, bases, lambda own, first: own - first),
            "Nanoseconds have been added to microseconds.",
        ),
        "sign": (
            lambda starts, bases: later(starts, bases, lambda own, first: (first - own) / 1000),
            "Who started the clock later seems to come earlier.",
        ),
        "own": (lambda starts, bases: starts, "These are the starts on each rank's own clock."),
    },
    what="The list of lists",
    says="All starts are on the clock of rank 0.",
)
