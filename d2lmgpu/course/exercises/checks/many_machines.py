"""Many Machines."""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, distance, exercise

formula(
    "local-rank",
    "The first `per_host` ranks are on host 0. Where is the next one?",
    "One number says how many whole hosts are full before this rank, the other what is left over.",
    cases=lambda g: [
        (int(g.integers(0, hosts * per_host)), hosts, per_host)
        for hosts, per_host in ((1, 1), (2, 2), (4, 2), (3, 8), (16, 8))
        for _ in range(6)
    ],
    right=lambda rank, hosts, per_host: divmod(rank, per_host),
    slips={
        "dealt": (
            lambda rank, hosts, per_host: [rank % hosts, rank // hosts],
            "You deal the ranks out to the hosts in turn. The first host takes the first ones.",
        ),
        "swapped": (
            lambda rank, hosts, per_host: [rank % per_host, rank // per_host],
            "The host comes first.",
        ),
    },
    what="The place",
    says="Every rank has its host and its GPU.",
    sized=False,
)

formula(
    "slow-link",
    "In a ring of k members, what does each send? Which members have their neighbour elsewhere?",
    "On each host one member of the flat ring sends to another host, and it sends what every "
    "member of that ring sends. How many members has each ring?",
    cases=lambda g: [
        (hosts, per_host, int(g.integers(10**6, 10**8)), hierarchical)
        for hosts, per_host in ((1, 4), (2, 2), (2, 8), (16, 8))
        for hierarchical in (False, True)
    ],
    right=lambda hosts, per_host, num_bytes, hierarchical: (
        (hosts > 1)
        * sum(
            num_bytes / (hosts if hierarchical else hosts * per_host)
            for _ in range(2 * (hosts if hierarchical else hosts * per_host) - 2)
        )
    ),
    slips={
        "every": (
            lambda hosts, per_host, num_bytes, hierarchical: (
                (hosts > 1)
                * (
                    2 * (hosts - 1) / hosts * num_bytes
                    if hierarchical
                    else 2 * per_host * (hosts * per_host - 1) / (hosts * per_host) * num_bytes
                )
            ),
            "Of a host's GPUs in the flat ring, only one has its neighbour on another host.",
        ),
        "one-host": (
            lambda hosts, per_host, num_bytes, hierarchical: (
                2 * (ring - 1) / ring * num_bytes
                if (ring := hosts if hierarchical else hosts * per_host) > 1
                else 0
            ),
            "A single host has nobody to send to over its link.",
        ),
    },
    what="What a host sends",
    says="The bytes on the slow link are right, flat and hierarchical.",
)

formula(
    "servers",
    "What passes over a worker's link in one direction, and what over a server's?",
    "A server takes a part from every worker. With many servers its link is not the busiest any "
    "more.",
    cases=lambda g: [
        (workers, servers, int(g.integers(10**6, 10**8)))
        for workers, servers in ((1, 1), (2, 1), (8, 1), (8, 3), (4, 4), (2, 8))
    ],
    right=lambda workers, servers, num_bytes: (
        num_bytes if servers >= workers else num_bytes / servers * workers
    ),
    slips={
        "worker": (
            lambda workers, servers, num_bytes: num_bytes,
            "That is a worker's link. Look at a server's.",
        ),
        "server": (
            lambda workers, servers, num_bytes: workers * num_bytes / servers,
            "That is a server's link. With many servers a worker's has more.",
        ),
        "one": (
            lambda workers, servers, num_bytes: workers * num_bytes,
            "The servers share what the workers send.",
        ),
    },
    what="What the busiest link carries",
    says="The busiest link is found with few servers and with many.",
)


@exercise(
    "two-hosts",
    "Which ranks are on one host, and which are the first of their hosts? Each of these is a "
    "group, and `dist.new_group` is a call of all ranks, also of those that are not in the group.",
    "`dist.reduce` to the first rank of the host, `dist.all_reduce` among the first ranks, "
    "`dist.broadcast` from the first rank of the host. Source and destination are ranks among all "
    "four.",
)
def once_over_the_link(hierarchical, g) -> str:
    """hierarchical(x): x becomes the sum over the four ranks; ranks 0 and 1 share a host."""
    hosts = (0, 1), (2, 3)
    x = g.normal(size=(4, 6))
    ranks = in_processes(hierarchical, [[row.copy()] for row in x])
    for rank, (answer,) in enumerate(ranks.arrays):
        off = distance(answer, x.sum(axis=0))
        if off > 1e-9:
            text = f"On rank {rank} the sum is {off:.1%} off."
            own_host, other_host = (
                x[list(host)] for host in (hosts[rank // 2], hosts[1 - rank // 2])
            )
            if np.array_equal(answer, x[rank]):
                raise Wrong("unchanged", f"{text} It is what it was before.")
            if distance(answer, own_host.sum(axis=0)) < 1e-9:
                raise Wrong("host", f"{text} It is that of its own host.")
            if any(distance(answer, x[rank] + other) < 1e-9 for other in other_host):
                raise Wrong("partner", f"{text} The other rank of its host is not in it.")
            raise Wrong("value", text)
    for number, host in enumerate(hosts):
        crosses = [
            call for rank in host for call in ranks.sent[rank] if not set(call.ranks) <= set(host)
        ]
        if any(set(host) < set(call.ranks) for call in crosses):
            text = "The sum is right, and a collective has two ranks of one host and others in it."
            raise Wrong("flat", f"{text} It does not know which of its links is slow.")
        handed = sum(call.numbers for call in crosses)
        if handed > x.shape[1]:
            text = f"The sum is right, and the ranks of host {number} hand {handed} numbers to"
            text = f"{text} collectives with the other host."
            raise Wrong("twice", f"{text} {x.shape[1]} are enough.")
    return "All four ranks have the sum, and each host sent its own once."
