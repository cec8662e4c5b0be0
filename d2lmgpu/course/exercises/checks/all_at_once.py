"""All at Once"""

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.ranks import layers_by_key, rows_on_a_mesh, step_of_hsdp
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


def rows_by_reshaping(rank, dp, tp, rows) -> list:
    """By cutting the rows themselves: along tp, then along dp."""
    ((i, j),) = np.argwhere(np.arange(dp * tp).reshape(dp, tp) == rank)
    own = np.arange(rows).reshape(tp, dp, -1)[j, i]
    return [own[0], own[-1]]


def rows_in_order(rank, dp, tp, rows) -> list:
    own = np.arange(rows).reshape(dp * tp, -1)[rank]
    return [own[0], own[-1]]


def one_behind(rank, dp, tp, rows) -> list:
    first, last = rows_by_reshaping(rank, dp, tp, rows)
    return [first, last + 1]


formula(
    "mesh-rows",
    "Where does a rank stand in the mesh? The last side counts fastest.",
    "Cut the rows along tp first, and take the part of its column; then cut that along dp.",
    cases=lambda g: [
        (int(g.integers(dp * tp)), dp, tp, dp * tp * int(g.integers(1, 20)))
        for dp, tp in ((2, 2), (2, 4), (4, 2), (3, 5), (8, 8))
        for _ in range(4)
    ],
    right=rows_by_reshaping,
    slips={
        "order": (rows_in_order, "That would be so if the matrix were cut along dp first."),
        "end": (one_behind, "Its second row is the one behind the last that the rank holds."),
    },
    what="The pair of rows",
    says="Every rank holds the rows that it holds on the page.",
    sized=False,
)


@exercise("mesh-rows")
def where_pytorch_has_them(held, g) -> str:
    """held(rank, dp, tp, rows), against PyTorch's own cuts on a mesh of four processes."""
    dp, tp, rows = 2, 2, 4 * int(g.integers(1, 20))
    numbers = np.arange(rows, dtype=np.float64)
    ranks = in_processes(partial(rows_on_a_mesh, dp, tp), [[numbers.copy()] for _ in range(4)])
    for rank, own in enumerate(ranks.results):
        answer = array(held(rank, dp, tp, rows), "The pair of rows", (2,))
        if [*answer] != [own[0], own[-1]]:
            text = f"rank = {rank}, dp = {dp}, tp = {tp}, rows = {rows}: PyTorch has others there."
            raise Wrong("pytorch", text)
    return "In four processes each rank of PyTorch's mesh holds these rows."


@exercise(
    "mesh-group",
    "Draw the mesh, two by two. Who has the same part of the matrix, with other sequences?",
    "The group of `dp`: `init_device_mesh` makes it on all ranks, and `all_reduce` takes it as "
    "`group`.",
)
def mean_over_the_replicas(average, g) -> str:
    """average(cut, norm): both become the mean over the two replicas, in place."""
    norms = [g.normal(size=6) for _ in range(2)]
    cuts = [g.normal(size=(3, 4)) for _ in range(4)]
    ranks = in_processes(average, [[cuts[r].copy(), norms[r // 2].copy()] for r in range(4)])
    for rank, (cut, norm) in enumerate(ranks.arrays):
        partner, neighbour = (rank + 2) % 4, rank ^ 1
        mean, of_norm = (cuts[rank] + cuts[partner]) / 2, sum(norms) / 2
        off = distance(cut, mean)
        if off > 1e-9:
            text = f"On rank {rank} the gradient of the matrix is {off:.1%} off."
            if distance(cut, sum(cuts) / 4) < 1e-9 or distance(cut, sum(cuts) / 2) < 1e-9:
                raise Wrong("world", f"{text} It holds parts of the matrix that are others'.")
            if distance(cut, (cuts[rank] + cuts[neighbour]) / 2) < 1e-9:
                raise Wrong("row", f"{text} It is averaged over the two parts of one matrix.")
            if distance(cut, 2 * mean) < 1e-9:
                raise Wrong("sum", f"{text} The replicas' gradients are added, not averaged.")
            raise Wrong("value", text)
        off = distance(norm, of_norm)
        if off > 1e-9:
            text = f"On rank {rank} the gradient of the norm is {off:.1%} off."
            if distance(norm, 2 * of_norm) < 1e-9:
                raise Wrong("twice", f"{text} It is twice what it should be.")
            raise Wrong("value", text)
    return "On each of the four processes both gradients are the means over the replicas."


LAYERS = (
    "norm1",
    "attn",
    "attn.q",
    "attn.k",
    "attn.v",
    "attn.o",
    "norm2",
    "mlp",
    "mlp.up",
    "mlp.down",
)
KEYS = (
    "blocks.*.attn.q",
    "blocks.*.mlp.upp",
    "blocks.0.mlp.down",
    "blocks.*.mlp",
    "blocks.*",
    "norm",
    "nrom",
    "blocks.*.norm*",
    "blocks.9.attn.o",
    "*.0.attn.?",
)


def networks(g) -> Iterator[tuple]:
    """A plan's keys, and the modules of a network."""
    for blocks in (1, 2, 12):
        numbers = range(blocks)
        layers = ["emb", "norm", "head", "blocks", *(f"blocks.{i}" for i in numbers)]
        layers += [f"blocks.{i}.{layer}" for i in numbers for layer in LAYERS]
        g.shuffle(layers)
        yield g.permutation(KEYS).tolist(), layers


def by_expression(keys, layers, star="[^.]*", mark="[^.]") -> list[int]:
    """A star and a question mark as regular expressions."""
    patterns = [re.escape(key).replace(r"\*", star).replace(r"\?", mark) for key in keys]
    return [sum(bool(re.fullmatch(p, layer)) for layer in layers) for p in patterns]


formula(
    "plan-keys",
    "Take key and name apart at the dots. When does each part of the key stand for the part of the "
    "name?",
    "`fnmatch.fnmatchcase(name, pattern)` knows stars. Given a whole name it lets a star stand for "
    "dots, too.",
    cases=lambda g: list(networks(g)),
    right=lambda keys, layers: by_expression(keys, layers),
    slips={
        "dots": (
            lambda keys, layers: by_expression(keys, layers, ".*", "."),
            "In it a star stands for dots, too.",
        ),
        "stars": (
            lambda keys, layers: [sum(key == layer for layer in layers) for key in keys],
            "In it a star stands for nothing but itself.",
        ),
    },
    what="The list of numbers of layers",
    says="Each key stands for as many layers as PyTorch would cut.",
    sized=False,
)


@exercise("plan-keys")
def as_pytorch_cuts(cut, g) -> str:
    """cut(keys, layers), against what PyTorch itself cuts by each of the keys, in two processes."""
    keys, layers = [*networks(g)][1]
    ranks = in_processes(partial(layers_by_key, keys, layers), [[np.zeros(1)] for _ in range(2)])
    answer = array(cut([*keys], [*layers]), "The list of numbers of layers", (len(keys),))
    for key, number, of_pytorch in zip(keys, answer, ranks.results[0]):
        if number != of_pytorch:
            raise Wrong("pytorch", f"{key!r} is not as many layers as PyTorch cuts by it.")
    return "In two processes PyTorch cuts as many layers by each key."


def by_collective(
    blocks, block, ends, dp, fsdp, itemsize, backward=True, part=True, again=False
) -> int:
    """Each collective that the device takes part in, one after the other."""
    groups = [block] * blocks + [ends]
    gathers = groups + [block] * blocks * backward + [ends] * again
    sums = [group / fsdp if part else group for group in groups]
    return itemsize * sum(gathers + groups + sums)


formula(
    "mesh-bytes",
    "Gathered, scattered, and summed over the copies: how many parameters is each of them about?",
    "A block is gathered twice, the ends once. What is summed over the copies is only what a "
    "device has left after the reduce-scatter.",
    cases=lambda g: [
        (
            int(g.integers(1, 40)),
            64 * int(g.integers(1, 999)),
            64 * int(g.integers(1, 999)),
            dp,
            fsdp,
            itemsize,
        )
        for dp, fsdp, itemsize in ((2, 2, 8), (4, 2, 4), (2, 8, 2), (16, 64, 4))
    ],
    right=lambda blocks, block, ends, dp, fsdp, itemsize: by_collective(
        blocks, block, ends, dp, fsdp, itemsize
    ),
    slips={
        "once": (
            lambda *case: by_collective(*case, backward=False),
            "The backward pass needs each block, too, and it was dropped.",
        ),
        "whole": (
            lambda *case: by_collective(*case, part=False),
            "The copies need not sum what another device has left.",
        ),
        "ends": (
            lambda *case: by_collective(*case, again=True),
            "What is no block is kept until the backward pass.",
        ),
    },
    what="The number of bytes",
    says="The bytes are right for all meshes.",
)


@exercise("mesh-bytes")
def as_pytorch_sends_them(num_bytes, g) -> str:
    """num_bytes(blocks, …), against the collectives of a step of PyTorch's HSDP, in processes."""
    blocks, width, dp, fsdp = int(g.integers(2, 5)), 8, 2, 2
    case = blocks, width * width, width * width, dp, fsdp, 8
    rows = [[row] for row in g.normal(size=(4, 3, width))]
    ranks = in_processes(partial(step_of_hsdp, blocks, dp, fsdp), rows)
    larger = [
        call.numbers * (len(call.ranks) if call.name.startswith("all_gather") else 1)
        for call in ranks.sent[0]
    ]
    answer = array(num_bytes(*case), "The number of bytes", ())
    if answer != 8 * sum(larger):
        text = f"{blocks} blocks on a mesh of 2 x 2 processes: PyTorch sends {8 * sum(larger)}"
        raise Wrong("pytorch", f"{text} bytes in {len(larger)} collectives, and not {answer:g}.")
    return f"In four processes PyTorch sends that in a step: {8 * sum(larger)} bytes a rank."
