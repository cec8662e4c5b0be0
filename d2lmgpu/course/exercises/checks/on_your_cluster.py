"""On Your Cluster: Slurm."""

from collections.abc import Iterator
from math import ceil

from d2lmgpu.course.exercises.formulas import formula


def sweeps(g) -> Iterator[tuple[int, list[float], list[int]]]:
    """A task's number, and the values of which it takes one each."""
    for num_lrs, num_sizes in ((1, 4), (2, 4), (3, 3), (5, 2)):
        lrs = [float(lr) for lr in g.uniform(0.01, 1, num_lrs)]
        sizes = [int(size) for size in g.choice(range(32, 1024), num_sizes, replace=False)]
        for task in range(num_lrs * num_sizes):
            yield task, lrs, sizes


formula(
    "sweep",
    "How many tasks share the first learning rate?",
    "A task's number counts batch sizes, and after the last of them the next learning rate begins.",
    cases=lambda g: list(sweeps(g)),
    right=lambda task, lrs, batch_sizes: [(lr, size) for lr in lrs for size in batch_sizes][task],
    slips={
        "slow": (
            lambda task, lrs, batch_sizes: [lrs[task % len(lrs)], batch_sizes[task // len(lrs)]],
            "From one task to the next it is the batch size that changes.",
        ),
        "diagonal": (
            lambda task, lrs, batch_sizes: [
                lrs[task % len(lrs)],
                batch_sizes[task % len(batch_sizes)],
            ],
            "Both change with every task. With two rates and four sizes some pairs then "
            "come twice.",
        ),
    },
    what="The pair",
    says="Each pair has its task.",
    sized=False,
)

formula(
    "srun-ranks",
    "On the second node, which numbers begin again at 0?",
    "A GPU is chosen by the local rank, and each node counts its own GPUs from 0.",
    cases=lambda g: [
        (node * per_node + local, local, nodes * per_node, nodes)
        for nodes, per_node in ((1, 2), (2, 1), (2, 4), (5, 8))
        for node, local in zip(
            g.integers(0, nodes, 6).tolist(), g.integers(0, per_node, 6).tolist()
        )
    ],
    right=lambda procid, localid, ntasks, nnodes: (procid, localid, ntasks),
    slips={
        "global": (
            lambda procid, localid, ntasks, nnodes: [procid, procid, ntasks],
            "A task on the second node would look for a GPU that its node does not have.",
        ),
        "nodes": (
            lambda procid, localid, ntasks, nnodes: [procid, localid, nnodes],
            "The world is made of processes, not of nodes.",
        ),
    },
    what="The three numbers",
    says="Rank, local rank and world size are right on every node.",
    sized=False,
)

formula(
    "time-limit",
    "How many minutes of computing are there in one job?",
    "The last job may be a short one, but it is a job.",
    cases=lambda g: (
        [
            (int(g.integers(1, 10**5)), limit, start)
            for limit, start in ((60, 0), (60, 5), (1440, 10), (240, 45))
            for _ in range(4)
        ]
        + [(110, 60, 5), (55, 60, 5)]
    ),
    right=lambda minutes, limit, start: ceil(minutes / (limit - start)),
    slips={
        "start": (
            lambda minutes, limit, start: ceil(minutes / limit),
            "Each job needs its time to start.",
        ),
        "last": (
            lambda minutes, limit, start: minutes // (limit - start),
            "What is left over needs a job, too.",
        ),
        "once": (
            lambda minutes, limit, start: ceil((minutes + start) / limit),
            "Every job has to start, not the first one alone.",
        ),
    },
    what="The number of jobs",
    says="The training comes to its end.",
    sized=False,
)
