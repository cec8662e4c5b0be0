"""The explorers of the chapters on scaling: what they offer, and what they answer."""

from dataclasses import replace
from functools import cache

from d2lmgpu.collectives.schedules import ALGORITHMS, plan
from d2lmgpu.costmodel.fit import GRADIENTS, MACHINES, SMALL, fit_small
from d2lmgpu.costmodel.model import (
    PRESETS,
    Link,
    Work,
    exchange_seconds,
    exposed_seconds,
    schedule_seconds,
    step,
)
from d2lmgpu.costmodel.presets import NETWORKS
from d2lmgpu.costmodel.published import rows
from d2lmgpu.figures import svg
from d2lmgpu.figures.diagrams import sums_after_rounds
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.sends import messages, overlapping
from d2lmgpu.figures.style import number

COUNTS = [2**i for i in range(11)]
LINK = Link(latency=10e-6, bandwidth=12.5e9)  # the one of chapters/scaling/allreduce


def cost() -> Explorer:
    """Machine, network, batch and number of GPUs -> the modelled step and how it scales.

    A network's device time is that of a published run on one GPU; on other machines it is scaled
    by the peak of their data sheets. Published points of the same choice are drawn beside.
    """

    def rate_alone(table, model):
        return next(row.rate for row in rows(table) if row.model == model and row.k == 1)

    @cache
    def curve(name, between, network, batch):
        table, model = network
        machine, home = PRESETS[name], PRESETS[MACHINES[table]]
        if between:
            machine = replace(machine, network=NETWORKS[between])
        if table in SMALL:
            work = fit_small(table)[model]
        else:
            work = Work(GRADIENTS[model], seconds_per_example=1 / rate_alone(table, model))
        slower = home.flops / machine.flops
        work = replace(work, seconds_per_example=slower * work.seconds_per_example)
        size, of_each = batch
        counts = [c for c in COUNTS if c <= machine.devices] if work.one_process else COUNTS
        return {c: step(work, machine, c, size * c if of_each else size) for c in counts}

    def answer(name, between, network, batch, k):
        table, model = network
        steps = curve(name, between, network, batch)
        if k not in steps:
            return (
                f"<p>This training loop is one process, and drives the {max(steps)} GPUs of "
                "one machine at most.\nChoose fewer.</p>"
            )
        modelled = {c: s.samples_per_second / steps[1].samples_per_second for c, s in steps.items()}
        measured = {
            row.k: row.rate / rate_alone(table, model)
            for row in rows(table)
            if (row.model, MACHINES[table]) == (model, name) and not between
            and row.batch_size == steps[row.k].batch_size
        }  # fmt: skip
        chart = svg.scaling(
            measured, modelled, k, "Speedup over the number of GPUs. The text says its numbers."
        )
        return "\n".join([*_step_in_words(steps[k], modelled, measured), chart])

    networks = {
        "LeNet, D2L's loop in MXNet": ("MXNet 2019", "lenet"),
        "ResNet-18, D2L's loop in MXNet": ("MXNet 2019", "resnet18"),
        "ResNet-18 at 64x64, DDP": ("d2l-neu weak", "resnet18"),
        "ResNet-152": ("MXNet EC2", "resnet-152"),
        "AlexNet": ("MXNet EC2", "alexnet"),
    }
    batches = {f"{n} on each GPU": (n, True) for n in (32, 256, 512)}
    batches |= {f"{n:,} in all": (n, False) for n in (256, 4096)}
    between = {"the machine's own": None}
    between |= {name: name for name in ("10 Gb Ethernet", "400 Gb Ethernet")}
    controls = {
        "Machine": ["V100 NVLink", "RTX 4090", "H100", "K80 x16"],
        "Cluster link": between,
        "Network": networks,
        "Batch": batches,
        "GPUs": [k for k in COUNTS if k not in (32, 128, 512)],
    }
    return Explorer(answer, controls)


def _step_in_words(s, modelled, measured):
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
    yield f"Speedup: <b>{number(modelled[s.k])}</b>."
    best = max(modelled, key=modelled.get)
    yield f"The most is {number(modelled[best])}, with {best:,} GPUs.</p>"
    points = ", ".join(f"{number(value)} on {k} GPUs" for k, value in measured.items() if k > 1)
    if points:
        yield f"<p>Measured and published: {points}.</p>"


def allreduce() -> Explorer:
    """Algorithm, number of devices and size of the gradient -> its rounds, one by one."""

    def answer(algorithm, k, num_bytes):
        names = {name: {"per_machine": 2} if name == "hierarchical" else {} for name in ALGORITHMS}
        plans = {name: plan(name, k, num_bytes // 4, **options) for name, options in names.items()}
        seconds = {name: schedule_seconds(p, LINK) for name, p in plans.items()}
        schedule, drawn = plans[algorithm], plan(algorithm, k, k, **names[algorithm])
        about = _schedule_in_words(schedule, num_bytes, seconds)
        ports = [0, *schedule.busiest_port()]
        frames = []
        for i, held in enumerate(sums_after_rounds(drawn)):
            sends = drawn.rounds[i - 1] if i else ()
            done = int((held[:k] == k).sum())
            words = (
                f"Round {i} of {len(drawn.rounds)}: {len(sends)} messages at once, "
                f"{_size(ports[i])} through the busiest device."
                if i else f"At the start each of {k} devices holds its own numbers."
            )  # fmt: skip
            alt = f"{words} {done} of {k * k} numbers on the devices are sums of all {k}."
            pairs = sorted({(send.source, send.target) for send in sends})
            frames.append(f"<p>{words}</p>\n{messages(held, k, pairs, alt)}\n{about}")
        return frames

    gradients = {"4 kB": 4000, "516 kB (LeNet)": 516_272, "45 MB (ResNet-18)": 44_700_000}
    controls = {"Algorithm": list(ALGORITHMS), "Devices": [2, 3, 4, 5, 8], "Gradient": gradients}
    return Explorer(answer, controls, {"Devices": "4"})


def _schedule_in_words(schedule, num_bytes, seconds) -> str:
    links = schedule.bytes_per_link()
    k = schedule.num_devices
    by_time = sorted(seconds, key=seconds.get)
    first = "tree" if seconds["tree"] < seconds["ring"] else "ring"
    return (
        f"<p>In all: {schedule.num_rounds} rounds;\n{len(links)} links in use, "
        f"{_size(max(links.values()))} over the busiest of them.\n"
        f"The busiest node sends {_size(max(schedule.bytes_sent()))}; the least possible, without "
        f"a host, is {_size(2 * (k - 1) / k * num_bytes)}.</p>\n"
        f"<p>Modelled for links with 10 µs and 12.5 GB/s: "
        + ", ".join(f"{name} {_time(seconds[name])}" for name in by_time)
        + f".\nBetween tree and ring, the {first} is faster here.</p>"
    )


def overlap() -> Explorer:
    """Gradient, backward pass, GPUs, link and bucket -> how much of the exchange shows."""

    def answer(num_bytes, backward, k, link, bucket):
        num_buckets = max(1, round(num_bytes / bucket)) if bucket else 1
        one = exchange_seconds("ring", k, num_bytes / num_buckets, link)
        sends = bucket_sends(one, backward / 2, backward, num_buckets)
        exchange = one * num_buckets
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
    links = {"NVLink, 150 GB/s": PRESETS["V100 NVLink"].link}
    links |= {f"{n} Gb Ethernet": NETWORKS[f"{n} Gb Ethernet"] for n in (400, 100, 10)}
    buckets = {f"{n} MB": n * 1e6 for n in (5, 25, 100)} | {"all in one": None}
    controls = {
        "Gradient": gradients,
        "Backward pass": {f"{n} ms": n / 1000 for n in (10, 40, 160)},
        "GPUs": [8, 512],
        "Link": links,
        "Bucket": buckets,
    }
    return Explorer(answer, controls, {"Backward pass": "40 ms", "Bucket": "25 MB"})


def bucket_sends(one: float, forward: float, backward: float, num_buckets: int) -> list:
    """(start, end) of each bucket's exchange, of `one` seconds: see model.exposed_seconds."""
    sends = [(0.0, 0.0)]
    for bucket in range(1, num_buckets + 1):
        start = max(sends[-1][1], forward + backward * bucket / num_buckets)
        sends.append((start, start + one))
    return sends[1:]


def _time(seconds: float) -> str:
    return _in_units(seconds, {"s": 1, "ms": 1e-3, "µs": 1e-6})


def _size(num_bytes: float) -> str:
    return _in_units(num_bytes, {"MB": 1e6, "kB": 1e3, "bytes": 1})


def _in_units(value: float, units: dict) -> str:
    """In the first unit that it reaches, else in the last."""
    unit = next((unit for unit, scale in units.items() if value >= scale), [*units][-1])
    return f"{number(value / units[unit])} {unit}"
