"""How a GPT's training is laid out over many devices: its memory, its traffic and its step.

A layout is a mesh of dp x fsdp x pp x tp devices: replicas, shards of parameters, stages of a
pipeline, parts of each matrix. `exchanges` counts what a device takes part in, `memory` what it
holds, and `step` how long all of it takes. All results are modelled, never measured; nothing is
fitted. Left out of the step: norms and the optimiser, which the memory's speed decides, the input
of data, stages of unequal work, and waiting for the slowest. Left out of the memory: what
`d2lmgpu.memory.cards` adds, workspaces, and the allocator's gaps.
Times are seconds, sizes are bytes.
"""

import csv
import math
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

from d2lmgpu.costmodel import CostError, need
from d2lmgpu.costmodel.model import PRESETS, Work, exposed_seconds, machine_seconds
from d2lmgpu.costmodel.presets import Link, Machine
from d2lmgpu.memory.cards import CARDS, FITS, OnCard, on_card

SIDES = ("dp", "fsdp", "pp", "tp")  # the ranks of a tp group are neighbours
OPTIMISER_BYTES = 12  # of a parameter: its copy in 32 bits and Adam's two numbers
SCORE_BYTES = 8  # of a score: in 32 bits, and its gradient
BUCKET_BYTES = Work.bucket_bytes  # of gradients that are sent at once, by DDP
KEPT = 16  # numbers that a block keeps of a token, in widths; of them 4 outside of the matrices
MOST_DEVICES = 2**20  # of `factorings`


@dataclass(frozen=True)
class Layout:
    """How many devices share what: the sides of a mesh, 1 where nothing is shared."""

    dp: int = 1  # copies of all that the other sides cut
    fsdp: int = 1  # devices that share the parameters' bytes, each with a batch of its own
    pp: int = 1  # stages of a pipeline
    tp: int = 1  # devices that share each matrix

    def __post_init__(self):
        for side in SIDES:
            need.whole(side, getattr(self, side))

    @property
    def devices(self) -> int:
        return math.prod(getattr(self, side) for side in SIDES)

    def distance(self, side: str) -> int:
        """How many ranks apart the neighbours of a group along ``side`` are."""
        need.choice("side", side, SIDES)
        return math.prod(getattr(self, inner) for inner in SIDES[SIDES.index(side) + 1 :])

    def groups(self, side: str) -> list[list[int]]:
        """The ranks of each group along ``side``. Raises CostError for another side."""
        distance, size = self.distance(side), getattr(self, side)
        return [
            [first + inner + distance * i for i in range(size)]
            for first in range(0, self.devices, distance * size)
            for inner in range(distance)
        ]


@dataclass(frozen=True)
class Sizes:
    """A GPT: ``width`` numbers a token, ``symbols``, and sequences of ``tokens``.

    The network of `d2lmgpu.torch.gpt`; ``tied`` if its head is the embedding's matrix.
    """

    width: int
    blocks: int
    symbols: int
    tokens: int
    tied: bool = False

    def __post_init__(self):
        for name in ("width", "blocks", "symbols", "tokens"):
            need.whole(name, getattr(self, name))
        need.kind("tied", self.tied, bool)

    @property
    def parameters(self) -> int:
        d = self.width
        ends = (self.symbols * (1 if self.tied else 2) + self.tokens + 2) * d
        return self.blocks * (12 * d * d + 13 * d) + ends

    def operations(self, recompute: bool = False) -> int:
        """Of one token, forward and backward; with ``recompute`` the blocks' forward pass twice."""
        need.kind("recompute", recompute, bool)
        block = 12 * self.width**2 + 2 * self.tokens * self.width
        passes = 8 if recompute else 6
        return passes * self.blocks * block + 6 * self.symbols * self.width


@dataclass(frozen=True)
class Training:
    """What each device is given, and how numbers are kept and sent."""

    batch: int  # sequences of an update, over all devices
    micro_batch: int = 1  # sequences that a device computes at once
    recompute: bool = False  # each block, in the backward pass
    interleave: int = 1  # stages that each device of a pipeline has
    cut_ends: bool = True  # by tp, too: embedding and head
    cut_tokens: bool = True  # by tp, where each token is alone: sequence parallelism
    parameter_bytes: int = 2  # of a parameter as it is gathered
    gradient_bytes: int = 4  # of a gradient as it is summed
    activation_bytes: int = 2

    def __post_init__(self):
        for field in fields(self):
            if field.type is bool:
                need.kind(field.name, getattr(self, field.name), bool)
            else:
                need.whole(field.name, getattr(self, field.name))


@dataclass(frozen=True)
class Exchange:
    """Calls of one kind that a device takes part in during a step, along one side of the mesh."""

    operation: str  # "all_reduce", "all_gather", "reduce_scatter" or "send"
    side: str
    calls: int
    num_bytes: float  # of all calls: of the larger side of each, what is put in or what comes out


@dataclass(frozen=True)
class Memory:
    """What a device holds at most, in bytes; none is measured."""

    states: float  # parameters, gradients and the optimiser's numbers
    gathered: float  # parameters and gradients of the blocks that are whole for a moment
    activations: float
    scores: float  # the head's output

    @property
    def total(self) -> float:
        return self.states + self.gathered + self.activations + self.scores

    def on(self, card: str) -> OnCard:
        """Whether it fits on a card of `d2lmgpu.memory.cards.CARDS`, by its name."""
        need.choice("card", card, CARDS)
        return on_card(int(self.total), int(self.total), card)


@dataclass(frozen=True)
class Step:
    """Modelled times of one step, in seconds: what each part adds."""

    compute: float
    tensor: float  # sums inside of the blocks
    sends: float  # from stage to stage
    bubble: float  # stages without work
    sharding: float  # gathers and sums of shards that nothing hides
    gradients: float  # the replicas' sums that nothing hides
    devices: int
    tokens: int  # of the batch
    operations: float  # of the whole batch, as the formula counts, nothing twice

    @property
    def seconds(self) -> float:
        return (
            self.compute + self.tensor + self.sends + self.bubble + self.sharding + self.gradients
        )

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    @property
    def flops(self) -> float:
        """Operations a second of a device: over its peak, the MFU."""
        return self.operations / self.seconds / self.devices


def factorings(devices: int, most_tp: int = 8) -> list[Layout]:
    """Every layout of so many devices, at most ``most_tp`` of them for each matrix.

    Raises CostError for devices above 2**20.
    """
    need.whole("devices", devices)
    need.whole("most_tp", most_tp)
    need(devices <= MOST_DEVICES, "devices", devices, f"{MOST_DEVICES:,} or less")
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    return [
        Layout(dp, fsdp, pp, devices // (dp * fsdp * pp))
        for dp in divisors
        for fsdp in divisors
        for pp in divisors
        if devices % (dp * fsdp * pp) == 0 and devices // (dp * fsdp * pp) <= most_tp
    ]


def micro_batches(layout: Layout, training: Training) -> int:
    """How many micro-batches a device computes for an update.

    Raises CostError for a batch that the devices and the micro-batch do not divide.
    """
    need.kind("layout", layout, Layout)
    need.kind("training", training, Training)
    at_once = layout.dp * layout.fsdp * training.micro_batch
    whole = training.batch % at_once == 0
    need(whole, "batch", training.batch, f"a multiple of {at_once}, dp x fsdp x micro_batch")
    return training.batch // at_once


def parameters(sizes: Sizes, layout: Layout, training: Training, stage=0) -> tuple[int, float, int]:
    """Of a stage: (its blocks, numbers of a block, numbers of its ends), before fsdp cuts them.

    Raises CostError for a stage that the pipeline does not have, and for more stages than blocks.
    """
    _check(sizes, layout, training)
    need.whole("stage", stage, least=0)
    need(stage < layout.pp, "stage", stage, f"a stage below {layout.pp}")
    d, t = sizes.width, layout.tp
    block = (12 * d + 7) * d / t + 6 * d  # norms and the biases of rows are whole
    matrix = sizes.symbols * d / (t if training.cut_ends else 1)
    first, last = stage == 0, stage == layout.pp - 1
    ends = first * (matrix + sizes.tokens * d) + last * 2 * d
    ends += last * matrix * (not (sizes.tied and first))
    blocks = sizes.blocks // layout.pp + (stage < sizes.blocks % layout.pp)
    return blocks, block, ends


def memory(sizes: Sizes, layout: Layout, training: Training) -> Memory:
    """What the device that holds most has to hold, with Adam and numbers of 16 and 32 bits.

    16 bytes for each parameter over fsdp devices, and what is gathered of two blocks. In a
    pipeline, as without fsdp, the 16-bit parameters and the sums of their gradients are whole all
    the time, and the optimiser's 12 bytes are shared (Narayanan et al., 2021; ZeRO's stage 1). Of
    activations a block keeps 16 d numbers a token (Korthikanti et al., 2022).
    """
    stages = {0, layout.pp - 1} if isinstance(layout, Layout) else {0}
    held = [_memory(sizes, layout, training, stage) for stage in sorted(stages)]
    return max(held, key=lambda one: one.total)


def _memory(sizes, layout, training, stage) -> Memory:
    blocks, block, ends = parameters(sizes, layout, training, stage)
    numbers = blocks * block + ends
    sent = training.parameter_bytes, training.gradient_bytes
    if layout.pp > 1 or layout.fsdp == 1:
        states, gathered = numbers * (sum(sent) + OPTIMISER_BYTES / layout.fsdp), 0.0
    else:
        states = numbers * (training.gradient_bytes + OPTIMISER_BYTES) / layout.fsdp
        gathered = (min(2, blocks) * block + ends) * sent[0] + block * sent[1]
    tokens = training.micro_batch * sizes.tokens
    of_token = training.activation_bytes * sizes.width
    t, outside = layout.tp, layout.tp if training.cut_tokens else 1
    all_of_block = tokens * of_token * ((KEPT - 4) / t + 4 / outside)
    at_once = layout.pp - stage
    if training.interleave > 1:
        at_once += (layout.pp - 1) / training.interleave
    at_once = min(micro_batches(layout, training), at_once)
    if training.recompute:
        activations = at_once * blocks * tokens * of_token / outside + all_of_block
    else:
        activations = at_once * blocks * all_of_block
    last = stage == layout.pp - 1
    scores = last * SCORE_BYTES * tokens * sizes.symbols / (t if training.cut_ends else 1)
    return Memory(states, gathered, activations, scores)


def exchanges(sizes: Sizes, layout: Layout, training: Training, stage=0) -> list[Exchange]:
    """What a device of a stage takes part in during one step, along each side of the mesh.

    Along tp two sums a block forward and two backward (and two more where it is recomputed), of all
    tokens of the micro-batch, and with ``cut_ends`` one more at each end; with ``cut_tokens`` each
    sum is an all-gather and a reduce-scatter. Along fsdp, as `fully_shard` does it: each block is
    gathered forward and backward, the ends once, and gradients are summed for each micro-batch; in
    a pipeline each of them once a step. Along dp the gradients that this device has left, once a
    step, in buckets of 25 MiB where nothing is sharded. Along pp each micro-batch's tokens to the
    next stage, and their gradient to the one before; tp devices send a part each.
    """
    blocks, block, ends = parameters(sizes, layout, training, stage)
    m, fsdp = micro_batches(layout, training), layout.fsdp
    found = []

    def add(operation, side, calls, num_bytes):
        if calls and getattr(layout, side) > 1:
            found.append(Exchange(operation, side, calls, num_bytes))

    activations = training.micro_batch * sizes.tokens * sizes.width * training.activation_bytes
    first, last = stage == 0, stage == layout.pp - 1
    sums = m * (blocks * (6 if training.recompute else 4) + training.cut_ends * (first + last))
    for operation in ("all_gather", "reduce_scatter") if training.cut_tokens else ("all_reduce",):
        add(operation, "tp", sums, sums * activations)
    numbers, rounds = blocks * block + ends, 1 if layout.pp > 1 else m
    again = layout.pp == 1  # in the backward pass
    gathers = (1 + again) * blocks + 1
    gathered = (1 + again) * blocks * block + ends
    add("all_gather", "fsdp", rounds * gathers, rounds * gathered * training.parameter_bytes)
    reduced = rounds * numbers * training.gradient_bytes
    add("reduce_scatter", "fsdp", rounds * (blocks + 1), reduced)
    if fsdp > 1:
        add("all_reduce", "dp", rounds * (blocks + 1), reduced / fsdp)
    else:
        gradients = numbers * training.gradient_bytes
        add("all_reduce", "dp", math.ceil(gradients / BUCKET_BYTES), gradients)
    sends = m * training.interleave * ((not last or training.interleave > 1) + (not first))
    add("send", "pp", sends, sends * activations / layout.tp)
    return found


def along(machine: Machine, layout: Layout, side: str) -> Machine:
    """The machine as the devices of one group along ``side`` see it.

    As many of them as are neighbours share its link; to others each has its share of the machine's
    network, since all groups send at once.
    """
    need.kind("machine", machine, Machine)
    need.kind("layout", layout, Layout)
    distance = layout.distance(side)
    inside = max(1, min(getattr(layout, side), machine.devices // distance))
    share = inside / machine.devices
    network = Link(machine.network.latency, machine.network.bandwidth * share)
    return replace(machine, devices=inside, network=network)


def seconds_of(exchange: Exchange, layout: Layout, machine: Machine) -> float:
    """Time of all calls of an exchange, one after the other.

    An all-gather and a reduce-scatter are the halves of an allreduce.
    """
    need.kind("exchange", exchange, Exchange)
    near = along(machine, layout, exchange.side)
    size, each = getattr(layout, exchange.side), exchange.num_bytes / exchange.calls
    if exchange.operation == "send":
        link = near.link
        if size > near.devices:  # the neighbour on another machine decides
            link = Link(near.network.latency, near.network.bandwidth / near.devices)
        return exchange.calls * (link.latency + each / link.bandwidth)
    part = 1.0 if exchange.operation == "all_reduce" else 0.5
    return exchange.calls * part * machine_seconds(near, size, each)


def step(
    sizes: Sizes, layout: Layout, training: Training, machine: Machine, busy: float = 1.0
) -> Step:
    """How long an update takes.

    All products run at ``busy`` of the machine's peak in 16 bits; at 1 the step is the shortest
    that there can be. The sums of tensor parallelism and the sends between stages hide behind
    nothing. What is gathered hides behind the forward pass, and gradients behind the backward pass,
    block by block; across a pipeline behind one micro-batch of it.
    A pipeline of p stages with m micro-batches has p - 1 slots more than m, over ``interleave``.
    """
    need.kind("machine", machine, Machine)
    need.positive("busy", busy)
    m = micro_batches(layout, training)
    found = exchanges(sizes, layout, training)

    def seconds(side, *operations):
        chosen = [one for one in found if one.side == side and one.operation in operations]
        return sum(seconds_of(one, layout, machine) for one in chosen)

    tokens = training.micro_batch * sizes.tokens
    spent = tokens * sizes.operations(training.recompute)
    compute = spent / (layout.pp * layout.tp) / (machine.matrix_flops * busy)
    blocks = parameters(sizes, layout, training)[0]
    even = sizes.blocks / layout.pp / blocks
    tensor = seconds("tp", "all_reduce", "all_gather", "reduce_scatter") / m * even
    of_sends = [seconds_of(one, layout, machine) / one.calls for one in found if one.side == "pp"]
    sends = sum(of_sends, 0.0) * 2 * training.interleave
    slot = compute + tensor + sends
    forward = slot / (4 if training.recompute else 3)
    rounds = 1 if layout.pp > 1 else m

    def exposed(exchange, behind, parts):
        return rounds * exposed_seconds(exchange / rounds, behind, parts, machine.overlap)

    gathers = seconds("fsdp", "all_gather")
    ahead = gathers if layout.pp > 1 else gathers * (blocks + 1) / (2 * blocks + 1)
    behind = gathers - ahead + seconds("fsdp", "reduce_scatter")
    backward = slot - forward
    of_shards = exposed(behind, backward, blocks + 1)
    sharding = exposed(ahead, forward, blocks + 1) + of_shards
    gradients = seconds("dp", "all_reduce")
    if layout.fsdp > 1:
        gradients = exposed(behind + gradients, backward, blocks + 1) - of_shards
    elif gradients:
        (calls,) = (one.calls for one in found if one.side == "dp")
        gradients = exposed_seconds(gradients, backward, calls, machine.overlap)
    return Step(
        m * compute,
        m * tensor,
        m * sends,
        (layout.pp - 1) / training.interleave * slot,
        sharding,
        gradients,
        layout.devices,
        training.batch * sizes.tokens,
        training.batch * sizes.tokens * sizes.operations(),
    )


@dataclass(frozen=True)
class Plan:
    """A way to train with a layout: what is modelled of it."""

    layout: Layout
    training: Training
    memory: Memory
    step: Step


def quickest(sizes: Sizes, layout: Layout, batch: int, machine: Machine, card: str) -> Plan | None:
    """The plan with the shortest modelled step that fits on a card; None if there is none.

    Tried are micro-batches of 1, 2, 4 and 8 sequences, with the blocks recomputed and without, and
    1, 2 and 4 stages of the pipeline a device. What cannot be told to fit does not count.
    """
    need.kind("sizes", sizes, Sizes)
    need.kind("layout", layout, Layout)
    need.whole("batch", batch)
    need.kind("machine", machine, Machine)
    need.choice("card", card, CARDS)
    if layout.pp > sizes.blocks or sizes.width % layout.tp:
        return None
    plans = []
    for micro_batch, interleave in product((1, 2, 4, 8), (1, 2, 4)):
        for recompute in (False, True):
            training = Training(batch, micro_batch, recompute, interleave)
            if batch % (layout.dp * layout.fsdp * micro_batch):
                continue
            if interleave > 1 and (layout.pp == 1 or sizes.blocks % (layout.pp * interleave)):
                continue
            held = memory(sizes, layout, training)
            if held.on(card).verdict == FITS:
                plans.append(Plan(layout, training, held, step(sizes, layout, training, machine)))
    return min(plans, key=lambda plan: plan.step.seconds, default=None)


def _check(sizes, layout, training):
    need.kind("sizes", sizes, Sizes)
    need.kind("layout", layout, Layout)
    need.kind("training", training, Training)
    if layout.pp > sizes.blocks:
        raise CostError(f"pp is {layout.pp}: give at most {sizes.blocks}, one block a stage.")
    if sizes.width % layout.tp:
        raise CostError(f"tp is {layout.tp}: give a divisor of the width, {sizes.width}.")


@dataclass(frozen=True)
class PublishedLayout:
    """A speed that somebody published, with the layout that reached it."""

    source: str
    name: str
    sizes: Sizes
    layout: Layout
    training: Training
    machine: Machine
    tflops: float  # of a GPU, as printed, in 10**12 operations a second
    counts: str  # "once", or "twice" if what is recomputed is in it
    card: str

    def predicted(self, busy: float = 1.0) -> float:
        """The same number, modelled."""
        modelled = step(self.sizes, self.layout, self.training, self.machine, busy)
        twice = self.sizes.operations(self.counts == "twice") / self.sizes.operations()
        return modelled.flops * twice / 1e12

    @property
    def memory(self) -> Memory:
        return memory(self.sizes, self.layout, self.training)


def _read(path) -> list[PublishedLayout]:
    def made(kind, row, **more):
        names = [field.name for field in fields(kind) if field.name in row]
        return kind(**{name: int(row[name]) for name in names}, **more)

    found = []
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            flags = {name: row.pop(name) == "yes" for name in ("recompute", "cut_tokens")}
            sizes = made(Sizes, row, tied=row.pop("tied") == "yes")
            found.append(
                PublishedLayout(
                    row["source"], row["name"], sizes, made(Layout, row),
                    made(Training, row, **flags), PRESETS[row["machine"]],
                    float(row["tflops"]), row["counts"], row["card"],
                )
            )  # fmt: skip
    return found


PUBLISHED = _read(Path(__file__).with_suffix(".csv"))
