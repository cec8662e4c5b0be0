"""The explorers of the chapters on scaling: what they offer, and what they answer."""

from dataclasses import asdict, replace
from functools import cache, partial

from d2lmgpu.collectives.schedules import ALGORITHMS, plan
from d2lmgpu.costmodel import layouts as of_layouts
from d2lmgpu.costmodel.fit import GRADIENTS, MACHINES, SMALL, fit_small, predict_curve
from d2lmgpu.costmodel.model import (
    PRESETS,
    Link,
    Work,
    exposed_seconds,
    flat_ring_seconds,
    machine_seconds,
    step,
)
from d2lmgpu.costmodel.presets import NETWORKS
from d2lmgpu.costmodel.published_rates import PublishedRow, rows
from d2lmgpu.figures import svg
from d2lmgpu.figures.buckets import BucketTimeline, plan_buckets
from d2lmgpu.figures.context import RingAttention
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.layouts import LayoutExplorer
from d2lmgpu.figures.moves import CollectiveExplorer
from d2lmgpu.figures.race import Race
from d2lmgpu.figures.sends import overlapping
from d2lmgpu.figures.split import SplitMLP
from d2lmgpu.figures.style import number
from d2lmgpu.memory import cards

COUNTS = [2**i for i in range(9)]  # 256 GPUs are the most of a published row
LINK = Link(latency=10e-6, bandwidth=12.5e9)  # the one of chapters/scaling/allreduce


# What `cost` offers: only trainings that somebody has run and published on a machine that is named.
TRAININGS = {
    "LeNet, D2L's loop in MXNet: V100": ("MXNet 2019", "lenet"),
    "ResNet-18, D2L's loop in MXNet: V100": ("MXNet 2019", "resnet18"),
    "ResNet-18, 256 images, DDP: RTX 4090": ("d2l-neu weak", "resnet18"),
    "ResNet-18, 512 images, DDP: RTX 4090": ("d2l-neu strong", "resnet18"),
    "ResNet-50, DDP, float32: V100": ("DGX-1 float32", "resnet-50"),
    "ResNet-50, DDP, 16 bit: V100": ("DGX-1 mixed", "resnet-50"),
    "ResNet-50, DDP, 16 bit: A100": ("DGX A100 mixed", "resnet-50"),
    "ResNet-152, MXNet: K80": ("MXNet EC2", "resnet-152"),
    "AlexNet, MXNet: K80": ("MXNet EC2", "alexnet"),
    "a language model, 16 bit: H100": ("Ultra-Scale", "llm"),
}
# text -> how many times the published batch
TIMES = {"a sixteenth": 1 / 16, "a quarter": 1 / 4, "as published": 1, "4 times": 4, "16 times": 16}
SHARED = {"of all GPUs": False, "of each GPU": True}
OWN = "the machine's own"
LINKS = {OWN: None} | {name: name for name in ("10 Gb Ethernet", "400 Gb Ethernet")}


def cost() -> Explorer:
    """A published training, network, batch and number of GPUs -> how it scales, with an error band.

    The device's time is that of the published run on one GPU of that machine: nothing is carried
    over to a machine on which nobody has run it. Published points are drawn beside.
    """

    def answer(training, between, of_each, times, k):
        if _published(*training)[0].k > 1:  # nobody has run it on one GPU
            if between or times != 1 or not of_each or k not in fitted_speedups(*training):
                return None
            modelled, words, sizes = fitted_speedups(*training), [_fitted_in_words(k)], None
        else:
            batch = times * _published(*training)[0].batch_size
            steps = _steps(training, between, of_each, batch)
            if k not in steps:
                return (
                    f"<p>This training loop is one process, and drives the {max(steps)} GPUs of "
                    "one machine at most.\nChoose fewer.</p>"
                )
            base = steps[1].samples_per_second
            modelled = {c: s.samples_per_second / base for c, s in steps.items()}
            words, sizes = _step_in_words(steps[k]), {c: s.batch_size for c, s in steps.items()}
        measured = {
            c: speedup
            for c, (speedup, size) in published_speedups(*training).items()
            if not between and (sizes is None or size == sizes[c])
        }
        inside = PRESETS[MACHINES[training[0]]].devices
        beyond = {c: speedup for c, speedup in modelled.items() if c > min(modelled)}
        expected = {c: _expected(c, speedup, c > inside) for c, speedup in beyond.items()}
        charts = [
            svg.scaling(
                measured,
                modelled,
                expected,
                k,
                "Speedup over the number of GPUs. The text says its numbers.",
            )
        ]
        sentences = [*_speedup_in_words(k, modelled, measured, k > inside)]
        if sizes and k > 1:
            curve, pays = _batches(training, between, of_each, k)
            sentences.append(_paying_in_words(curve, pays, k))
            charts.append(
                svg.paying(
                    curve,
                    batch,
                    pays,
                    "Speedup over the batch. The text says from which size on more GPUs pay.",
                )
            )
        pair = ['<div class="explore-pair">', *charts, "</div>"]
        return "\n".join([*words, *sentences, *pair])

    controls = {
        "Training": TRAININGS,
        "Cluster link": LINKS,
        "The batch is": SHARED,
        "Batch": TIMES,
        "GPUs": COUNTS,
    }
    start = {"Batch": "as published", "GPUs": "2"}
    absent = "<p>Nobody has published that.</p>"
    return Explorer(answer, controls, start, absent, sliders=("Batch", "GPUs"))


@cache
def _steps(training, between, of_each, batch) -> dict:
    """{k: Step} for one choice: a `batch` of each GPU, or of all."""
    machine = PRESETS[MACHINES[training[0]]]
    if between:
        machine = replace(machine, network=NETWORKS[between])
    work, size = _work(*training), max(1, round(batch))
    counts = [c for c in COUNTS if c <= machine.devices] if work.one_process else COUNTS
    return {c: step(work, machine, c, size * c if of_each else size) for c in counts}


@cache
def _batches(training, between, of_each, k) -> tuple[dict, float | None]:
    """{batch: speedup of k GPUs}, over all of `TIMES`, and from which batch on it is above 1."""

    def speedup(batch):
        steps = _steps(training, between, of_each, batch)
        return steps[k].samples_per_second / steps[1].samples_per_second

    published = _published(*training)[0].batch_size
    curve = {2.0**i * published: speedup(2.0**i * published) for i in range(-4, 5)}
    below = [batch for batch, value in curve.items() if value <= 1]
    above = [batch for batch, value in curve.items() if value > 1]
    if not below or not above or max(below) > min(above):
        return curve, None
    low, high = max(below), min(above)
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if speedup(middle) <= 1 else (low, middle)
    return curve, high


def _paying_in_words(curve, pays, k) -> str:
    if pays is not None:
        return f"<p>{k} GPUs pay from a batch of <b>{number(pays)}</b>.</p>"
    always = min(curve.values()) > 1
    return f"<p>{k} GPUs pay {'at all of' if always else 'at none of'} these batches.</p>"


@cache
def _published(table, model) -> list[PublishedRow]:
    """The rows of a training, the one with the fewest GPUs first."""
    return sorted((row for row in rows(table) if row.model == model), key=lambda row: row.k)


def published_speedups(table, model) -> dict[int, tuple[float, int]]:
    """{k: (speedup, batch)}, in GPUs of the published run with the fewest."""
    base = _published(table, model)[0]
    return {
        row.k: (base.k * row.rate / base.rate, row.batch_size) for row in _published(table, model)
    }


@cache
def fitted_speedups(table, model) -> dict[int, float]:
    """The same by the model that is fitted on 8 to 32 GPUs: for what nobody has run on one."""
    return {p.row.k: p.row.k * p.efficiency for p in predict_curve(table, model)}


@cache
def band(several: bool) -> tuple[float, float]:
    """What published runs reached of the speedups modelled here: the least and the most.

    several: those on several machines; else those on one. All rows of `TRAININGS`.
    """
    reached = []
    for training in TRAININGS.values():
        machine = PRESETS[MACHINES[training[0]]]
        for k, (published, batch_size) in published_speedups(*training).items():
            if k == _published(*training)[0].k or (k > machine.devices) != several:
                continue
            if _published(*training)[0].k > 1:
                modelled = fitted_speedups(*training)[k]
            else:
                base, rate = (
                    step(_work(*training), machine, count, size).samples_per_second
                    for count, size in ((1, _published(*training)[0].batch_size), (k, batch_size))
                )
                modelled = rate / base
            reached.append(published / modelled)
    return min(reached), max(reached)


def _expected(k, modelled, several) -> tuple[float, float]:
    """What of a modelled speedup published runs lead to expect; none had more than k."""
    low, high = band(several)
    return low * modelled, min(high * modelled, k)


def _work(table, model) -> Work:
    """Of a training that was published on one GPU."""
    if table in SMALL:
        return fit_small(table)[model]
    return Work(GRADIENTS[model], seconds_per_example=1 / _published(table, model)[0].rate)


def _fitted_in_words(k):
    return (
        "<p>Modelled by the fit on 8 to 32 GPUs: nobody has published this training on fewer than "
        f"8,\nso the speedup counts GPUs of the run on 8. On {k} GPUs:"
    )


def _step_in_words(s):
    """Lines, few of which change from answer to answer: a page stores equal ones once."""
    yield "<p>Modelled: a step takes"
    yield f"<b>{_time(s.seconds)}</b>."
    yield "Of these the devices spend"
    yield f"<b>{s.communication_share:.0%}</b>"
    yield "on exchange that is not hidden."
    yield f"They compute for {_time(s.compute)},"
    yield f"the whole exchange takes {_time(s.exchange)}."
    if s.issue:  # known for loops of one process only
        yield f"The host loads for {_time(s.load)}"
        yield f"and issues for {_time(s.issue)}."


def _speedup_in_words(k, modelled, measured, several):
    yield f"Speedup: <b>{number(modelled[k])}</b>."
    if k > min(modelled):
        low, high = band(several)
        least, most = _expected(k, modelled[k], several)
        yield f"Published runs on {'several machines' if several else 'one machine'} had"
        yield f"{low:.0%} to {high:.0%} of what this model says:"
        yield f"expect <b>{number(least)} to {number(most)}</b>."
    best = max(modelled, key=modelled.get)
    yield f"The most is {number(modelled[best])}, with {best:,} GPU{'s' * (best > 1)}.</p>"
    points = ", ".join(f"{number(value)} on {c} GPUs" for c, value in measured.items() if c > 1)
    if points:
        yield f"<p>Measured and published: {points}.</p>"


def allreduce() -> Race:
    """Two algorithms side by side, for a number of devices and a size of the gradient."""

    def plans(k, num_bytes):
        options = {"hierarchical": {"per_machine": 2}}
        return {name: plan(name, k, num_bytes // 4, **options.get(name, {})) for name in ALGORITHMS}

    gradients = {"4 kB": 4000, "516 kB (LeNet)": 516_272, "45 MB (ResNet-18)": 44_700_000}
    counts = (2, 3, 4, 5, 8)
    sizes = {text: [plans(k, size) for k in counts] for text, size in gradients.items()}
    start = {"size": "45 MB (ResNet-18)", "devices": 4, "first": "ring", "second": "naive"}
    return Race(
        sizes,
        lambda num_bytes: LINK.latency + num_bytes / LINK.bandwidth,
        "Modelled for links with 10 µs and 12.5 GB/s. A round takes as long as the busiest port.",
        start,
    )


def overlap() -> Explorer:
    """Gradient, backward pass, machines, network and bucket -> how much of the exchange shows."""

    def answer(num_bytes, backward, machines, network, bucket):
        num_buckets = max(1, round(num_bytes / bucket)) if bucket else 1
        machine = replace(PRESETS["V100 NVLink"], network=network)
        bucket_seconds = machine_seconds(
            machine, machines * machine.devices, num_bytes / num_buckets
        )
        sends = bucket_sends(bucket_seconds, backward / 2, backward, num_buckets)
        exchange = bucket_seconds * num_buckets
        exposed = exposed_seconds(exchange, backward, num_buckets)
        hidden = 1 - exposed / exchange
        alt = f"The device computes while the network sends; {_time(exposed)} stick out."
        return (
            f"<p>Modelled: the exchange takes {_time(exchange)}\nin {num_buckets} "
            f"{'bucket' if num_buckets == 1 else 'buckets'}.\n<b>{_time(exposed)}</b> of it come "
            f"after the backward pass;\n{hidden:.0%} are hidden.</p>\n"
            + overlapping(backward / 2, backward, sends, alt)
        )

    gradients = {"102 MB (ResNet-50)": 102.4e6, "554 MB (VGG-16)": 553.6e6}
    gradients |= {"45 MB (ResNet-18)": 44.7e6, "0.5 MB (LeNet)": 516_272}
    buckets = {f"{n} MB": n * 1e6 for n in (5, 25, 100)} | {"all in one": None}
    names = [f"{n} Gb Ethernet" for n in (400, 100, 10)]
    controls = {
        "Gradient": gradients,
        "Backward pass": {f"{n} ms": n / 1000 for n in (10, 40, 160)},
        "Machines of 8 V100": [1, 2, 64],
        "Between them": {name: NETWORKS[name] for name in names},
        "Bucket": buckets,
    }
    start = {"Backward pass": "40 ms", "Machines of 8 V100": "2", "Bucket": "25 MB"}
    return Explorer(answer, controls, start)


def bucket_sends(bucket_seconds: float, forward: float, backward: float, num_buckets: int) -> list:
    """(start, end) of each bucket's exchange, of `bucket_seconds`: see model.exposed_seconds."""
    layers = [(f"{i}", 1.0, backward / num_buckets) for i in range(num_buckets)]
    planned = plan_buckets(
        layers, lambda num_bytes: bucket_seconds, at_least=0
    )  # a bucket for each
    return [(forward + bucket.start, forward + bucket.end) for bucket in planned]


def collectives(*names: str, ranks: int = 4) -> CollectiveExplorer:
    """Each collective before and after, round by round: those named, or all of them."""
    return CollectiveExplorer(*names, ranks=ranks)


def buckets() -> BucketTimeline:
    """Buckets that leave during the backward pass beside all at the end, for three sizes of ring.

    The update is that of chapters/scaling/overlap: the bytes of ResNet-50's gradient and a backward
    pass of 40 ms, here in 16 layers that are all alike, on machines of eight V100.
    """
    num_layers, num_bytes, backward = 16, 102.4e6, 0.040
    layers = [
        (f"{i}", num_bytes / num_layers, backward / num_layers) for i in range(1, num_layers + 1)
    ]
    machine = PRESETS["V100 NVLink"]
    exchanges = {f"{k}": partial(flat_ring_seconds, machine, k) for k in (8, 64, 512)}
    sizes = {f"{layers[0][1] * of / 1e6:.3g} MB": of * layers[0][1] for of in (1, 2, 4, 8)}
    return BucketTimeline(
        layers,
        exchanges,
        sizes | {"all in one": num_bytes},
        "Modelled: 102 MB of gradients in 16 equal layers, a backward pass of 40 ms, machines of "
        "eight V100 with 100 Gb Ethernet between them, one ring through all GPUs.",
        start="25.6 MB",
        among="64",
        forward=backward / 2,
    )


def ring_attention(ranks: int = 4) -> RingAttention:
    """Keys and values on a ring of ranks, contiguous beside zigzag, round by round."""
    return RingAttention(ranks)


# What `layouts` offers. Sizes as published: Touvron et al., 2023 (Llama 2, of which 7B and 13B have
# keys and values for each head), Grattafiori et al., 2024 (Llama 3), Brown et al., 2020 (GPT-3).
GPTS = {
    "Llama 2 7B": of_layouts.Sizes(4_096, 32, 32_000, 4_096),
    "Llama 2 13B": of_layouts.Sizes(5_120, 40, 32_000, 4_096),
    "Llama 3 70B": of_layouts.Sizes(8_192, 80, 128_256, 8_192, grouped=8),
    "GPT-3 175B": of_layouts.Sizes(12_288, 96, 50_257, 2_048, tied=True),
    "Llama 3 405B": of_layouts.Sizes(16_384, 126, 128_256, 8_192, grouped=16),
}
CARD_OF = {"A100": "A100 80GB", "H100": "H100 80GB", "H200": "H200"}
MOST_TP, MOST_CP = 8, 16
LAYOUTS_START = {
    "network": "Llama 3 70B",
    "batch": "4,194,304",
    "sequence": "32,768",
    "machine": "H100",
    "gpus": "64",
}


def layouts(**start) -> LayoutExplorer:
    """Every (dp, fsdp, pp, cp, tp) of 64, 256 or 1,024 GPUs: its memory and its step.

    All numbers are those of ``d2lmgpu.costmodel.layouts``, which the script beside the picture has
    again. The band of a step's time is that of the published rows.

    Parameters
    ----------
    **start : str
        Of network, batch, sequence, machine and gpus the texts that are chosen at first.

    Returns
    -------
    LayoutExplorer

    Raises
    ------
    FigureError
        For a start that is not offered.
    """
    machines = {}
    for name, card in CARD_OF.items():
        machine = PRESETS[name]
        machines[name] = {
            "devices": machine.devices,
            "link": [machine.link.latency, machine.link.bandwidth],
            "network": [machine.network.latency, machine.network.bandwidth],
            "flops": machine.matrix_flops,
            "card": cards.CARDS[card].total,
            "cardName": card,
        }

    def powers(*exponents):
        return {f"{2**n:,}": 2**n for n in exponents}

    choices = {
        "network": {text: asdict(sizes) for text, sizes in GPTS.items()},
        "batch": powers(20, 22, 24),
        "sequence": powers(11, 12, 13, 15, 17),
        "machine": machines,
        "gpus": powers(6, 8, 10),
    }
    low, high = of_layouts.BAND
    given = {
        "optimiser": of_layouts.OPTIMISER_BYTES,
        "score": of_layouts.SCORE_BYTES,
        "bucket": of_layouts.BUCKET_BYTES,
        "kept": of_layouts.KEPT,
        "context": cards.CONTEXT,
        "miss": cards.MISS,
        "band": [low, high],
        "mostTp": MOST_TP,
        "mostCp": MOST_CP,
    }
    used = [row for row in of_layouts.PUBLISHED if row.used]
    held_out = [row for row in of_layouts.PUBLISHED if not row.used]
    missed = [row for row in held_out if not low <= row.times <= high]
    names = sorted({row.name for row in missed})
    about = (
        f"A step is modelled with all products at the peak. Its band is no fit of the model: "
        f"{len(used)} published steps, of Megatron-LM on A100 and of MosaicML on H100, took "
        f"{low:.2f} to {high:.2f} times as long as modelled. Of {len(held_out)} more that were "
        f"held out, {len(held_out) - len(missed)} lie in the band; {len(missed)}, of "
        f"{' and '.join(names)}, took less. At most {MOST_TP} GPUs share a matrix and "
        f"{MOST_CP} a sequence. Memory is what the allocator needs, up to what it and CUDA may "
        f"take besides; the dashed line is the card."
    )
    start = LAYOUTS_START | start
    words = f"How to factor {start['gpus']} GPUs for {start['network']}, layout by layout."
    return LayoutExplorer(choices, start, given, words, about)


def split_mlp(ranks: int = 2) -> SplitMLP:
    """An MLP over ranks, columns and then rows: who holds what before and after each step."""
    return SplitMLP(ranks)


def _time(seconds: float) -> str:
    return _in_units(seconds, {"s": 1, "ms": 1e-3, "µs": 1e-6})


def _in_units(value: float, units: dict) -> str:
    """In the first unit that it reaches, else in the last."""
    unit = next((unit for unit, scale in units.items() if value >= scale), [*units][-1])
    return f"{number(value / units[unit])} {unit}"
