"""How a GPT's training is laid out over many devices: its memory, its traffic and its step.

A layout is a mesh of dp x fsdp x pp x cp x tp devices: replicas, shards of parameters, stages of a
pipeline, parts of a sequence, parts of each matrix. `exchanges` counts what a device takes part in,
`memory` what it holds, and `step` how long all of it takes. All results are modelled, never
measured; nothing is fitted. Left out of the step: norms and the optimiser, which the memory's speed
decides, the input of data, stages of unequal work, and waiting for the slowest. Left out of the
memory: what `d2lmgpu.memory.cards` adds, workspaces, and the allocator's gaps.

Devices that share a sequence have all parameters in common, as those that share a batch do. So
parameters are cut along fsdp and cp together (`SHARDED`).
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
from d2lmgpu.machine.checks import is_list
from d2lmgpu.memory.cards import CARDS, DOES_NOT, FITS, OPEN, OnCard, on_card

SIDES = ("dp", "fsdp", "pp", "cp", "tp")  # the ranks of a tp group are neighbours
SHARDED = "fsdp x cp"  # the sides along which parameters are cut, as one
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
    cp: int = 1  # devices that share each sequence: context parallelism
    tp: int = 1  # devices that share each matrix

    def __post_init__(self):
        for side in SIDES:
            need.whole(side, getattr(self, side))

    @property
    def devices(self) -> int:
        """How many devices the layout takes: the product of its sides."""
        return math.prod(getattr(self, side) for side in SIDES)

    @property
    def shards(self) -> int:
        """How many devices share the parameters' bytes: those of fsdp and cp."""
        return self.fsdp * self.cp

    def size(self, side: str) -> int:
        """How many devices a group along ``side`` has, `SHARDED` among them."""
        need.choice("side", side, (*SIDES, SHARDED))
        return self.shards if side == SHARDED else getattr(self, side)

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

    The network of `d2lmgpu.torch.gpt`; ``tied`` if its head is the embedding's matrix. Of a network
    in which several heads of queries have the keys and values of one, ``grouped`` is their number:
    a ring sends less, and all else is counted as if each had its own.
    """

    width: int
    blocks: int
    symbols: int
    tokens: int
    tied: bool = False
    grouped: int = 1

    def __post_init__(self):
        for name in ("width", "blocks", "symbols", "tokens", "grouped"):
            need.whole(name, getattr(self, name))
        need.kind("tied", self.tied, bool)

    @property
    def parameters(self) -> int:
        """How many numbers the network learns."""
        return int(self.blocks * self._block() + self._ends())

    def _block(self, tp: int = 1) -> float:
        """Numbers of a block on one of ``tp`` devices: norms and the biases of rows are whole."""
        d = self.width
        return (12 * d + 7) * d / tp + 6 * d

    def _ends(self, first: bool = True, last: bool = True, tp: int = 1) -> float:
        """Numbers outside the blocks, of a stage with these ends, on one of ``tp`` devices."""
        d, matrix = self.width, self.symbols * self.width / tp
        before = first * (matrix + self.tokens * d)
        return before + last * (2 * d + matrix * (not (self.tied and first)))

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
        """All bytes of a device at the peak."""
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
    context: float  # keys and values on the ring that nothing hides
    sends: float  # from stage to stage
    bubble: float  # stages without work
    sharding: float  # gathers and sums of shards that nothing hides
    gradients: float  # the replicas' sums that nothing hides
    devices: int
    tokens: int  # of the batch
    operations: float  # of the whole batch, as the formula counts, nothing twice

    @property
    def seconds(self) -> float:
        """A whole step: the sum of its parts."""
        of_slots = self.compute + self.tensor + self.context + self.sends
        return of_slots + self.bubble + self.sharding + self.gradients

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second of all devices together."""
        return self.tokens / self.seconds

    @property
    def flops(self) -> float:
        """Operations a second of a device: over its peak, the MFU."""
        return self.operations / self.seconds / self.devices


def factorings(devices: int, most_tp: int = 8, most_cp: int = 1) -> list[Layout]:
    """Every layout of so many devices, with at most ``most_tp`` for each matrix.

    And at most ``most_cp`` for each sequence. Raises CostError for devices above 2**20.
    """
    need.whole("devices", devices)
    need.whole("most_tp", most_tp)
    need.whole("most_cp", most_cp)
    need(devices <= MOST_DEVICES, "devices", devices, f"{MOST_DEVICES:,} or less")
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    layouts = []
    for dp, fsdp, pp in product(divisors, repeat=3):
        rest, over = divmod(devices, dp * fsdp * pp)
        if over:
            continue
        of_cp = [cp for cp in divisors if cp <= most_cp and rest % cp == 0]
        layouts += [Layout(dp, fsdp, pp, cp, rest // cp) for cp in of_cp if rest // cp <= most_tp]
    return layouts


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


def parameters(
    sizes: Sizes, layout: Layout, training: Training, stage=0
) -> tuple[int, float, float]:
    """Of a stage: (its blocks, numbers of a block, numbers of its ends), before fsdp cuts them.

    Raises CostError for a stage that the pipeline does not have, and for more stages than blocks.
    """
    _check(sizes, layout, training)
    need.whole("stage", stage, least=0)
    need(stage < layout.pp, "stage", stage, f"a stage below {layout.pp}")
    first, last = stage == 0, stage == layout.pp - 1
    ends = sizes._ends(first, last, layout.tp if training.cut_ends else 1)
    blocks = sizes.blocks // layout.pp + (stage < sizes.blocks % layout.pp)
    return blocks, sizes._block(layout.tp), ends


def memory(sizes: Sizes, layout: Layout, training: Training) -> Memory:
    """What the device that holds most has to hold, with Adam and numbers of 16 and 32 bits.

    16 bytes for each parameter over fsdp x cp devices, and what is gathered of two blocks. In a
    pipeline, as without shards, the 16-bit parameters and the sums of their gradients are whole all
    the time, and the optimiser's 12 bytes are shared (Narayanan et al., 2021; ZeRO's stage 1). Of
    activations a block keeps 16 d numbers a token (Korthikanti et al., 2022); of a sequence each of
    cp devices has its tokens. What of keys and values is on its way is left out.
    """
    stages = {0, layout.pp - 1} if isinstance(layout, Layout) else {0}
    held = [_memory(sizes, layout, training, stage) for stage in sorted(stages)]
    return max(held, key=lambda of_stage: of_stage.total)


def _memory(sizes, layout, training, stage) -> Memory:
    blocks, block, ends = parameters(sizes, layout, training, stage)
    numbers = blocks * block + ends
    sent = training.parameter_bytes, training.gradient_bytes
    if layout.pp > 1 or layout.shards == 1:
        states, gathered = numbers * (sum(sent) + OPTIMISER_BYTES / layout.shards), 0.0
    else:
        states = numbers * (training.gradient_bytes + OPTIMISER_BYTES) / layout.shards
        gathered = (min(2, blocks) * block + ends) * sent[0] + block * sent[1]
    tokens = training.micro_batch * sizes.tokens // layout.cp
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
    sum is an all-gather and a reduce-scatter. Along cp each block's keys and values go a ring of
    attention forward and backward, and on the way back their gradients go home with them; forward
    once more where it is recomputed. Along fsdp x cp, as `fully_shard` does it: each block is
    gathered forward and backward, the ends once, and gradients are summed for each micro-batch; in
    a pipeline each of them once a step. Along dp the gradients that this device has left, once a
    step, in buckets of 25 MiB where nothing is sharded. Along pp each micro-batch's tokens to the
    next stage, and their gradient to the one before; tp devices send a part each.
    """
    blocks, block, ends = parameters(sizes, layout, training, stage)
    m, shards = micro_batches(layout, training), layout.shards
    all_exchanges = []

    def add(operation, side, calls, num_bytes):
        if calls and layout.size(side) > 1:
            all_exchanges.append(Exchange(operation, side, calls, num_bytes))

    tokens = training.micro_batch * sizes.tokens // layout.cp
    activations = tokens * sizes.width * training.activation_bytes
    first, last = stage == 0, stage == layout.pp - 1
    sums = m * (blocks * (6 if training.recompute else 4) + training.cut_ends * (first + last))
    for operation in ("all_gather", "reduce_scatter") if training.cut_tokens else ("all_reduce",):
        add(operation, "tp", sums, sums * activations)
    hops = m * blocks * (sum(_hops(layout.cp, training)) + layout.cp)
    add("send", "cp", hops, hops * 2 * activations / layout.tp / sizes.grouped)
    numbers, rounds = blocks * block + ends, 1 if layout.pp > 1 else m
    again = layout.pp == 1  # in the backward pass
    gathers = (1 + again) * blocks + 1
    gathered = (1 + again) * blocks * block + ends
    add("all_gather", SHARDED, rounds * gathers, rounds * gathered * training.parameter_bytes)
    reduced = rounds * numbers * training.gradient_bytes
    add("reduce_scatter", SHARDED, rounds * (blocks + 1), reduced)
    if shards > 1:
        add("all_reduce", "dp", rounds * (blocks + 1), reduced / shards)
    else:
        gradients = numbers * training.gradient_bytes
        add("all_reduce", "dp", math.ceil(gradients / BUCKET_BYTES), gradients)
    sends = m * training.interleave * ((not last or training.interleave > 1) + (not first))
    add("send", "pp", sends, sends * activations / layout.tp)
    return all_exchanges


def _hops(cp, training) -> tuple[int, int]:
    """How often a block's keys and values go on to the next rank: (forward, backward)."""
    return (cp - 1) * (2 if training.recompute else 1), cp - 1


def along(machine: Machine, layout: Layout, side: str) -> Machine:
    """The machine as the devices of one group along ``side`` see it.

    As many of them as are neighbours share its link; to others each has its share of the machine's
    network, since all groups send at once.
    """
    need.kind("machine", machine, Machine)
    need.kind("layout", layout, Layout)
    inside = 1
    for of_side in ("fsdp", "cp") if side == SHARDED else (side,):
        near = machine.devices // layout.distance(of_side)
        inside *= max(1, min(layout.size(of_side), near))
    share = inside / machine.devices
    network = Link(machine.network.latency, machine.network.bandwidth * share)
    return replace(machine, devices=inside, network=network)


def seconds_of(exchange: Exchange, layout: Layout, machine: Machine) -> float:
    """Time of all calls of an exchange, one after the other.

    An all-gather and a reduce-scatter are the halves of an allreduce.
    """
    need.kind("exchange", exchange, Exchange)
    near = along(machine, layout, exchange.side)
    size, each = layout.size(exchange.side), exchange.num_bytes / exchange.calls
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

    All products run at ``busy`` of the machine's peak in 16 bits. The sums of tensor parallelism
    and the sends between stages hide behind nothing. Keys and values hide behind the attention of a
    round, of which the mask leaves half; the last hop of their gradients, home, behind nothing.
    What is gathered hides behind the forward pass, and gradients behind the backward pass, block by
    block; across a pipeline behind one micro-batch of it.
    """
    need.kind("machine", machine, Machine)
    need.positive("busy", busy)
    m = micro_batches(layout, training)
    all_exchanges = exchanges(sizes, layout, training)

    def seconds(side, *operations):
        of_side = [
            exchange
            for exchange in all_exchanges
            if exchange.side == side and exchange.operation in operations
        ]
        return sum(seconds_of(exchange, layout, machine) for exchange in of_side)

    def of_a_call(side):
        return sum(
            (seconds_of(e, layout, machine) / e.calls for e in all_exchanges if e.side == side), 0.0
        )

    tokens = training.micro_batch * sizes.tokens // layout.cp
    spent = tokens * sizes.operations(training.recompute)
    compute = spent / (layout.pp * layout.tp) / (machine.matrix_flops * busy)
    blocks = parameters(sizes, layout, training)[0]
    even = sizes.blocks / layout.pp / blocks
    tensor = seconds("tp", "all_reduce", "all_gather", "reduce_scatter") / m * even
    sends = of_a_call("pp") * 2 * training.interleave
    context = 0.0
    if layout.cp > 1:
        hop = of_a_call("cp")
        pairs = tokens * sizes.tokens // layout.cp  # of queries and keys that meet in a round
        attention = 2 * pairs * sizes.width / layout.tp / (machine.matrix_flops * busy)
        shown = max(0.0, hop - attention) if machine.overlap else hop
        forward, backward = _hops(layout.cp, training)
        # on the way back keys and their gradients, behind twice the operations
        context = ((forward + 2 * backward) * shown + hop) * sizes.blocks / layout.pp
    slot = compute + tensor + context + sends
    forward = slot / (4 if training.recompute else 3)
    rounds = 1 if layout.pp > 1 else m

    def exposed(exchange, behind, parts):
        return rounds * exposed_seconds(exchange / rounds, behind, parts, machine.overlap)

    gathers = seconds(SHARDED, "all_gather")
    ahead = gathers if layout.pp > 1 else gathers * (blocks + 1) / (2 * blocks + 1)
    behind = gathers - ahead + seconds(SHARDED, "reduce_scatter")
    backward = slot - forward
    of_shards = exposed(behind, backward, blocks + 1)
    sharding = exposed(ahead, forward, blocks + 1) + of_shards
    gradients = seconds("dp", "all_reduce")
    if layout.shards > 1:
        gradients = exposed(behind + gradients, backward, blocks + 1) - of_shards
    elif gradients:
        (calls,) = (exchange.calls for exchange in all_exchanges if exchange.side == "dp")
        gradients = exposed_seconds(gradients, backward, calls, machine.overlap)
    return Step(
        m * compute,
        m * tensor,
        m * context,
        m * sends,
        _empty_slots(m, layout.pp, training.interleave) * slot,
        sharding,
        gradients,
        layout.devices,
        training.batch * sizes.tokens,
        training.batch * sizes.tokens * sizes.operations(),
    )


def _empty_slots(m, p, v) -> float:
    """Of a pipeline: slots without work, beside m with it, where each of p devices has v stages.

    Interleaved, micro-batches go around in groups of p; where there are fewer, places stay empty.
    """
    return max(m, p) - m + (min(m, p) - 1) / v


@dataclass(frozen=True)
class Plan:
    """A way to train with a layout: what is modelled of it."""

    layout: Layout
    training: Training
    memory: Memory
    step: Step


CANNOT = "cannot be made"
VERDICTS = (FITS, OPEN, DOES_NOT, CANNOT)  # of a layout, the best first


@dataclass(frozen=True)
class Considered:
    """What the model says of a layout."""

    layout: Layout
    verdict: str  # one of `VERDICTS`
    plan: Plan | None  # the quickest that fits, else the smallest; None where none can be made
    reason: str = ""  # why none can be made


def quickest(sizes: Sizes, layout: Layout, batch: int, machine: Machine, card: str) -> Plan | None:
    """The plan with the shortest modelled step that fits on a card; None if there is none.

    What cannot be told to fit does not count. See `considered` for what is tried.
    """
    best = considered(sizes, layout, batch, machine, card)
    return best.plan if best.verdict == FITS else None


def considered(sizes: Sizes, layout: Layout, batch: int, machine: Machine, card: str) -> Considered:
    """Whether a layout can train a network on cards, and the best way that the model knows.

    Tried are micro-batches of 1, 2, 4 and 8 sequences, with the blocks recomputed and without, and
    1, 2 and 4 stages of the pipeline a device.

    Parameters
    ----------
    sizes : Sizes
    layout : Layout
    batch : int
        Sequences of an update, over all devices.
    machine : Machine
    card : str
        One of `d2lmgpu.memory.cards.CARDS`.

    Returns
    -------
    Considered

    Raises
    ------
    CostError
        For a batch below 1, for an unknown card, and for other types.
    """
    need.kind("sizes", sizes, Sizes)
    need.kind("layout", layout, Layout)
    need.whole("batch", batch)
    need.kind("machine", machine, Machine)
    need.choice("card", card, CARDS)
    reason = _cannot(sizes, layout, batch)
    if reason:
        return Considered(layout, CANNOT, None, reason)
    held = [
        (training, memory(sizes, layout, training)) for training in _trainings(sizes, layout, batch)
    ]
    verdicts = [of.on(card).verdict for _, of in held]
    verdict = min(verdicts, key=VERDICTS.index)
    if verdict != FITS:
        training, of = min(held, key=lambda both: both[1].total)
        return Considered(layout, verdict, _plan(sizes, layout, training, of, machine))
    best = None
    for (training, of), of_card in zip(held, verdicts):
        if of_card == FITS and not (best and _at_least(sizes, best, training) > best.step.seconds):
            plan = _plan(sizes, layout, training, of, machine)
            best = plan if best is None or plan.step.seconds < best.step.seconds else best
    return Considered(layout, verdict, best)


def _plan(sizes, layout, training, held, machine) -> Plan:
    return Plan(layout, training, held, step(sizes, layout, training, machine))


def _at_least(sizes, best, training) -> float:
    """Seconds that another training of the same layout computes and waits in the pipeline."""
    m, layout = micro_batches(best.layout, training), best.layout
    once = best.step.compute / sizes.operations(best.training.recompute)
    slots = 1 + _empty_slots(m, layout.pp, training.interleave) / m
    return once * sizes.operations(training.recompute) * slots * (1 - 1e-9)


def _cannot(sizes, layout, batch) -> str:
    copies = layout.dp * layout.fsdp
    if batch % copies:
        return f"{batch:,} sequences for {copies:,} groups"
    return {
        "pp": f"{sizes.blocks:,} blocks for {layout.pp:,} stages",
        "cp": f"{sizes.tokens:,} tokens for {2 * layout.cp:,} chunks",
        "tp": f"a width of {sizes.width:,} for {layout.tp:,} parts",
        None: "",
    }[_misfit(sizes, layout)]


def _trainings(sizes, layout, batch):
    for micro_batch, interleave, recompute in product((1, 2, 4, 8), (1, 2, 4), (False, True)):
        if batch % (layout.dp * layout.fsdp * micro_batch):
            continue
        if interleave > 1 and (layout.pp == 1 or sizes.blocks % (layout.pp * interleave)):
            continue
        yield Training(batch, micro_batch, recompute, interleave)


def ranked(
    sizes: Sizes,
    devices: int,
    batch: int,
    machine: Machine,
    card: str,
    most_tp: int = 8,
    most_cp: int = 16,
) -> list[Considered]:
    """All layouts of so many devices: those that fit, the quickest first, and then the others.

    Those follow in the order of `VERDICTS`, the smallest first.

    Parameters
    ----------
    sizes : Sizes
    devices : int
    batch : int
        Sequences of an update, over all devices.
    machine : Machine
    card : str
        One of `d2lmgpu.memory.cards.CARDS`.
    most_tp, most_cp : int
        As of `factorings`.

    Returns
    -------
    list of Considered

    Raises
    ------
    CostError
        For what `factorings` and `considered` refuse.
    """
    every = factorings(devices, most_tp, most_cp)
    candidates = [considered(sizes, layout, batch, machine, card) for layout in every]

    def place(candidate):
        if candidate.plan is None:
            return VERDICTS.index(candidate.verdict), 0.0
        fits = candidate.verdict == FITS
        of_plan = candidate.plan.step.seconds if fits else candidate.plan.memory.total
        return VERDICTS.index(candidate.verdict), of_plan

    return sorted(candidates, key=place)


def _misfit(sizes, layout) -> str | None:
    """The first side along which a network cannot be cut so; None if there is none."""
    if layout.pp > sizes.blocks:
        return "pp"
    if layout.cp > 1 and sizes.tokens % (2 * layout.cp):
        return "cp"  # each device has an early and a late part of a sequence
    return "tp" if sizes.width % layout.tp else None


def _check(sizes, layout, training):
    need.kind("sizes", sizes, Sizes)
    need.kind("layout", layout, Layout)
    need.kind("training", training, Training)
    if side := _misfit(sizes, layout):
        words = {
            "pp": f"at most {sizes.blocks}, one block a stage",
            "cp": f"a divisor of half of the tokens, {sizes.tokens}, since each device has an "
            "early and a late part of a sequence",
            "tp": f"a divisor of the width, {sizes.width}",
        }[side]
        raise CostError(f"{side} is {layout.size(side)}: give {words}.")


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
    used: bool = True  # for `BAND`; others were held out, or their source does not tell all

    def predicted(self, busy: float = 1.0) -> float:
        """The same number, modelled."""
        modelled = step(self.sizes, self.layout, self.training, self.machine, busy)
        twice = self.sizes.operations(self.counts == "twice") / self.sizes.operations()
        return modelled.flops * twice / 1e12

    @property
    def memory(self) -> Memory:
        """The modelled memory of a device in the published run."""
        return memory(self.sizes, self.layout, self.training)

    @property
    def times(self) -> float:
        """How many times as long as modelled at the peak a published step took."""
        return self.predicted() / self.tflops


def band(rows: list[PublishedLayout]) -> tuple[float, float]:
    """The least and the most of `PublishedLayout.times` among rows.

    Parameters
    ----------
    rows : list of PublishedLayout
        At least one.

    Returns
    -------
    tuple of float

    Raises
    ------
    CostError
        For other rows, and for none.
    """
    good = is_list(rows) and rows and all(isinstance(row, PublishedLayout) for row in rows)
    need(good, "rows", rows, "a list of PublishedLayout, at least one")
    times = [row.times for row in rows]
    return min(times), max(times)


def _read(path) -> list[PublishedLayout]:
    def made(kind, row, **more):
        names = [field.name for field in fields(kind) if field.name in row]
        return kind(**{name: int(row[name]) for name in names}, **more)

    layouts = []
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            flags = {name: row.pop(name) == "yes" for name in ("recompute", "cut_tokens")}
            used = row.pop("used") == "yes"
            sizes = made(Sizes, row, tied=row.pop("tied") == "yes")
            layouts.append(
                PublishedLayout(
                    row["source"],
                    row["name"],
                    sizes,
                    made(Layout, row),
                    made(Training, row, **flags),
                    PRESETS[row["machine"]],
                    float(row["tflops"]),
                    row["counts"],
                    row["card"],
                    used,
                )
            )
    return layouts


# Megatron-LM: arXiv 2104.04473, table 1; micro-batches and interleaving from NVIDIA/Megatron-LM,
# examples/sc21/run_table_1.sh at 79a3bb6. MosaicML: mosaicml/llm-foundry,
# scripts/train/benchmarking/README.md at 8c8dd48, its MFU times 989.5, the peak that it takes.
# Llama 3: arXiv 2407.21783, table 4; of the third row a print has dp 4, with which neither the
# GPUs nor the tokens of a batch come out, and 8 here.
PUBLISHED = _read(Path(__file__).with_suffix(".csv"))
BAND = band([row for row in PUBLISHED if row.used])  # of a step, in times of what is modelled
