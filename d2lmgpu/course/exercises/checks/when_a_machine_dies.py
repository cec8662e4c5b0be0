"""When a Machine Dies."""

from math import sqrt

from d2lmgpu.course.exercises.formulas import formula

formula(
    "missing",
    "Without momentum, what does SGD remember from one update to the next?",
    "Each of the three is needed for one reason only, and that reason may be absent.",
    cases=lambda g: [
        (saved, momentum, dropout, position)
        for saved in ([], ["optimizer"], ["position", "random"], ["random"])
        for momentum, dropout, position in (
            (0.9, 0.5, 120),
            (0.0, 0.5, 120),
            (0.9, 0.0, 0),
            (0.0, 0.0, int(g.integers(1, 500))),
        )
    ],
    right=lambda saved, momentum, dropout, position: [
        int(bool(why) and what not in saved)
        for what, why in (("optimizer", momentum), ("random", dropout), ("position", position))
    ],
    slips={
        "all": (
            lambda saved, momentum, dropout, position: [
                int(name not in saved) for name in ("optimizer", "random", "position")
            ],
            "Not each training needs all three: what has no dropout draws nothing at random.",
        ),
        "needed": (
            lambda saved, momentum, dropout, position: [
                int(momentum > 0),
                int(dropout > 0),
                int(position > 0),
            ],
            "That is what is needed. Some of it has been saved.",
        ),
    },
    what="The three numbers",
    says="What is named is what is missing, and nothing else.",
    sized=False,
)


formula(
    "place-it",
    "A life that begins at update 30 saves every 100. When does it save first?",
    "If each life counts from its own beginning, a short one never comes as far as a save.",
    cases=lambda g: (
        [
            (first + int(g.integers(0, 300)), first, 1000, every)
            for every in (20, 100, 130)
            for first in (0, 100, *g.integers(1, 600, 3).tolist())
        ]
        + [(90, 30, 95, 100), (100, 30, 300, 100)]
    ),
    right=lambda done, first, total, every: next(
        n for n in range(done + 1, total + 1) if n % every == 0 or n == total
    ),
    slips={
        "from-here": (
            lambda done, first, total, every: min(
                first + (done - first) // every * every + every, total
            ),
            "It counts from where this life began, so that the next save moves away.",
        ),
        "no-end": (
            lambda done, first, total, every: done // every * every + every,
            "The end is saved, too.",
        ),
        "before": (
            lambda done, first, total, every: min(-(-done // every) * every, total),
            "After the update that was just made it has saved already.",
        ),
    },
    what="The next save",
    says="Each life saves after the same updates, however it began.",
    sized=False,
)

formula(
    "interval",
    "Of 24 hosts each fails once a day. How many hours lie between two failures of the whole?",
    "The interval is the root of twice the cost times the mean time between failures.",
    cases=lambda g: g.uniform((1, 0.1, 1, 1), (100, 2, 500, 300), (4, 4)).tolist(),
    right=lambda cost, update, hosts, days: sqrt(2 * cost * days * 24 * 3600 / hosts) / update,
    slips={
        "one-host": (
            lambda cost, update, hosts, days: sqrt(2 * cost * days * 86400) / update,
            "Any of the hosts ends it, so failures come more often than on one.",
        ),
        "seconds": (
            lambda cost, update, hosts, days: sqrt(2 * cost * days * 86400 / hosts),
            "That is in seconds. How many updates are made in them?",
        ),
        "two": (
            lambda cost, update, hosts, days: sqrt(cost * days * 86400 / hosts) / update,
            "Half an interval is lost with a failure, not a whole one: there is a 2 under "
            "the root.",
        ),
    },
    what="The number of updates",
    says="So often it wastes the least.",
)
