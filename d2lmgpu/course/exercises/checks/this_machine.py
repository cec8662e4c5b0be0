"""Is This Machine All Right?"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula

FACTORS = {"allreduce": 2, "reduce-scatter": 1, "all-gather": 1}  # times (k-1)/k


def of_a_bus(num_bytes, seconds, k, collective) -> float:
    sent = num_bytes
    if collective in FACTORS:
        sent = num_bytes / k * (k - 1) * FACTORS[collective]
    return sent / seconds


def some_sums(g) -> list[tuple[int, float, int, str]]:
    return [
        (int(g.integers(1, 99)) * 2**20, float(g.uniform(0.001, 0.5)), int(k), collective)
        for k in g.integers(2, 17, 3)
        for collective in (*FACTORS, "broadcast")
    ]


formula(
    "bus-bandwidth",
    "What does each device send in a ring, as a part of the array?",
    "An allreduce is a reduce-scatter and an all-gather. In a broadcast each link carries all.",
    cases=some_sums,
    right=of_a_bus,
    slips={
        "algbw": (lambda n, t, k, c: n / t, "That is `algbw`, without the factor."),
        "allreduce": (
            lambda n, t, k, c: n / t * 2 * (k - 1) / k,
            "That is the factor of an allreduce, for each collective.",
        ),
        "broadcast": (
            lambda n, t, k, c: n / t * FACTORS.get(c, 1) * (k - 1) / k,
            "Of a broadcast each link carries the whole array.",
        ),
    },
    what="The bus bandwidth",
    says="These are the factors of nccl-tests.",
)


def some_links(g) -> list:
    """One rank all of whose links are slow, and one slower link between two others."""
    k = int(g.integers(5, 9))
    slow, first, second = g.permutation(k)[:3]
    rates = g.uniform(20, 25, (k, k))
    rates[slow] = g.uniform(5, 9, k)
    rates[first, second] = rates[second, first] = 2.0
    rates[:, slow] = rates[slow]
    rates = np.tril(rates, -1)
    return (rates + rates.T).round(2).tolist()


def all_slow(rates) -> int:
    limit = max(map(max, rates)) / 2
    for rank, row in enumerate(rates):
        if all(rate < limit for other, rate in enumerate(row) if other != rank):
            return rank
    raise AssertionError("no rank is slow")


formula(
    "slow-rank",
    "The slowest link has two ends. Which of them is to blame, or neither?",
    "Half of the fastest link's bandwidth is the limit. Whose links are all below it?",
    cases=lambda g: [(some_links(g),) for _ in range(12)],
    right=all_slow,
    slips={
        "pair": (
            lambda rates: int(np.argmin([min(r for r in row if r) for row in rates])),
            "That rank is one end of the slowest link; its other links are fast.",
        ),
        "fast": (
            lambda rates: int(np.argmax([max(row) for row in rates])),
            "That rank has the fastest link.",
        ),
    },
    what="The rank",
    says="All its links are slow: look at its slot, its cable, its port.",
    sized=False,
)

PATHS = [
    "P2P/CUMEM",
    "P2P/direct pointer",
    "SHM/direct/direct",
    "NET/IB/2/GDRDMA",
    "NET/IB/0",
    "NET/Socket/0",
]
BY_HOST = {"SHM/direct/direct", "NET/IB/0", "NET/Socket/0"}


def some_lines(g) -> list[str]:
    drawn = [PATHS[i] for i in (*range(len(PATHS)), *g.integers(0, len(PATHS), 9))]
    return [
        f"[{i % 8}] NCCL INFO Channel {i:02}/0 : {i % 8}[{i % 8}] -> {(i + 1) % 8}[0] via {path}"
        for i, path in enumerate(drawn)
    ]


formula(
    "by-the-host",
    "Which ways need the host's memory, and which go from one device to another without it?",
    "A network card that has GDRDMA reads the GPU's memory itself. TCP never does.",
    cases=lambda g: [(some_lines(g),) for _ in range(8)],
    right=lambda lines: sum(line.split(" via ")[1] in BY_HOST for line in lines),
    slips={
        "gdrdma": (
            lambda lines: sum("via SHM" in line or "via NET" in line for line in lines),
            "With GDRDMA the card reads the GPU's memory: that is not by the host.",
        ),
        "network": (
            lambda lines: sum("via NET" in line and "GDRDMA" not in line for line in lines),
            "SHM is the host's memory, too.",
        ),
        "socket": (
            lambda lines: sum(
                "via SHM" in line or ("via NET/IB" in line and "GDRDMA" not in line)
                for line in lines
            ),
            "TCP goes by the host's memory, too.",
        ),
    },
    what="The number of lines",
    says="These messages cross the host's memory.",
)
