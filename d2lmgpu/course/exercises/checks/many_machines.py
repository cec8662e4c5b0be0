"""Many Machines."""

from d2lmgpu.course.exercises.formulas import formula

formula(
    "local-rank",
    "The first `per_host` ranks are on host 0. Where is the next one?",
    "One number says how many whole hosts are full before this rank, the other what is left over.",
    cases=lambda g: [
        (int(g.integers(0, hosts * per_host)), hosts, per_host)
        for hosts, per_host in ((1, 1), (2, 2), (4, 2), (3, 8), (16, 8)) for _ in range(6)
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
)  # fmt: skip

formula(
    "slow-link",
    "In a ring of k members, what does each send? Which members have their neighbour elsewhere?",
    "On each host one member of the flat ring sends to another host, and it sends what every "
    "member of that ring sends. How many members has each ring?",
    cases=lambda g: [
        (hosts, per_host, int(g.integers(10**6, 10**8)), hierarchical)
        for hosts, per_host in ((1, 4), (2, 2), (2, 8), (16, 8)) for hierarchical in (False, True)
    ],
    right=lambda hosts, per_host, num_bytes, hierarchical: (hosts > 1) * sum(
        num_bytes / (hosts if hierarchical else hosts * per_host)
        for _ in range(2 * (hosts if hierarchical else hosts * per_host) - 2)
    ),
    slips={
        "every": (
            lambda hosts, per_host, num_bytes, hierarchical: (hosts > 1) * (
                2 * (hosts - 1) / hosts * num_bytes
                if hierarchical
                else 2 * per_host * (hosts * per_host - 1) / (hosts * per_host) * num_bytes
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
)  # fmt: skip

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
)  # fmt: skip
