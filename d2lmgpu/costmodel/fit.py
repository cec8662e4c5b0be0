"""The cost model against published numbers: fitted on the rows that allow it, tried on the others.

    d2lmgpu forecast --published

prints every row with its prediction. Small tables: everything is fitted on the one-GPU rows, the
rest comes from the machine's preset and from counting operations. Large curves: fitted on 8 to 32
devices.
"""

from dataclasses import dataclass, replace

import numpy as np

from d2lmgpu.costmodel import need
from d2lmgpu.costmodel.least_squares import fit_factors
from d2lmgpu.costmodel.model import PRESETS, Link, Work, machine_seconds, step, wait_seconds
from d2lmgpu.costmodel.presets import GBIT, NET, NVLINK
from d2lmgpu.costmodel.published_rates import EFFICIENCIES, PublishedRow, models, rows, tables

# Seconds to issue one operation from Python: MXNet 30-60 µs (apache/mxnet#17097, December 2019),
# PyTorch 13 µs (a profile in apache/mxnet#14883, September 2019).
ISSUE = {"MXNet": 45e-6, "PyTorch": 13e-6}

# Operations that D2L's loops issue from Python in a step: per device (copies of the shard, forward,
# loss, one backward call, update), and for the exchange per further device.
#   LeNet from scratch: 4 + 12 + 4 + 1 + 8 parameters x 4; 8 x 5 in allreduce.
#   ResNet-18: 4 + 65 + 4 + 1 + 76 parameters; push and pull of each.
#   CNN of the Gluon lab: 4 + 10 + 4 + 1 + 8; push and pull of each.
OPERATIONS = {"lenet": (53, 40), "resnet18": (150, 152), "mnist_cnn": (27, 16)}

# Bytes of the gradients in float32. MXNet EC2 states its sizes itself. The Playbook does not name
# the model: there only the product of bytes and a fitted factor matters.
GRADIENTS = {
    "lenet": 4 * 129_068,
    "resnet18": 4 * 11.18e6,
    "mnist_cnn": 4 * 128_000,
    "alexnet": 203e6,
    "inception-v3": 95e6,
    "resnet-152": 240e6,
    "resnet-50": 4 * 25.6e6,
    "vgg-16": 4 * 138.4e6,
    "llm": 2e9,
}

MACHINES = {
    "MXNet 2019": "V100 NVLink",
    "MXNet 2023": "V100 PCIe",
    "PyTorch 2023": "V100 PCIe",
    "Lecture 2019": "M60",
    "Gluon lab": "V100 NVLink",
    "d2l-neu weak": "RTX 4090",
    "d2l-neu strong": "RTX 4090",
    "DGX-1 float32": "V100 NVLink",
    "DGX-1 mixed": "V100 NVLink",
    "DGX A100 tf32": "A100",
    "DGX A100 mixed": "A100",
    "MXNet EC2": "K80 x16",
    "TensorFlow EC2": "K80",
    "Ultra-Scale": "H100",
}
CURVES = ("MXNet EC2", "TensorFlow EC2", "Ultra-Scale")
SMALL = [table for table in tables() if table not in CURVES]
# A process and a loader for each GPU: nothing of the host's time is known.
DDP = [table for table in SMALL if table.startswith(("d2l-neu", "DGX"))]


@dataclass(frozen=True)
class Prediction:
    """A published row and the modelled rate; for a curve also efficiencies against 8 devices."""

    row: PublishedRow
    rate: float
    efficiency: float | None = None
    published_efficiency: float | None = None

    @property
    def error(self) -> float:
        """Relative error of the step time: above 0 where the model is too slow."""
        return self.row.rate / self.rate - 1


def fit_small(table: str) -> dict[str, Work]:
    """One Work per model, from the table's one-GPU rows.

    The smallest model tells how long loading takes, if its device is done before the host has
    issued everything: an assumption. The larger one tells the device time. Of D2L's loops the one
    from scratch, with LeNet, waits for the devices after every batch, the others once an epoch.
    """
    need.choice("table", table, SMALL)
    fits = {}
    for row in rows(table, "fit"):
        example = 1 / row.rate
        work = Work(GRADIENTS[row.model], example)
        if table not in DDP:
            seconds = ISSUE["PyTorch" if "PyTorch" in table else "MXNet"]
            issue, exchange_issue = (seconds * count for count in OPERATIONS[row.model])
            if not fits:
                load = example - issue / row.batch_size
            work = replace(
                work,
                seconds_per_example=example if fits else 0.0,
                load_seconds=load,
                issue_seconds=issue,
                exchange_issue_seconds=exchange_issue,
                one_process=True,
                waits=row.model == "lenet",
            )
        fits[row.model] = work
    return fits


def predict_small(table: str) -> list[Prediction]:
    """Every row of a small table, predicted with `fit_small`."""
    fits, machine = fit_small(table), PRESETS[MACHINES[table]]
    return [
        Prediction(row, step(fits[row.model], machine, row.k, row.batch_size).samples_per_second)
        for row in rows(table)
    ]


def curve_terms(table: str, model: str, k: int) -> np.ndarray:
    """What a step's time is made of: something constant, the preset's exchange, growing waits."""
    need.choice("table", table, CURVES)
    need.choice("model", model, models(table))
    exchange = machine_seconds(PRESETS[MACHINES[table]], k, GRADIENTS[model])
    return np.array([1.0, exchange, wait_seconds(k, 1.0) - 1.0])


def fit_curve(table: str, model: str) -> np.ndarray:
    """Non-negative factors of `curve_terms`: least squares of the relative error, 8-32 devices."""
    need.choice("model", model, models(table))
    fitted = [row for row in rows(table, "fit") if row.model == model]
    seconds = np.array([row.batch_size / row.rate for row in fitted])
    terms = np.array([curve_terms(table, model, row.k) for row in fitted])
    return fit_factors(terms, seconds)


def predict_curve(table: str, model: str) -> list[Prediction]:
    """Every row of a curve from 8 devices on, with `fit_curve`."""
    factors = fit_curve(table, model)
    wanted = [row for row in rows(table) if row.model == model and row.k >= 8]
    rates = [row.batch_size / (curve_terms(table, model, row.k) @ factors) for row in wanted]
    each, published = rates[0] / wanted[0].k, wanted[0].rate / wanted[0].k  # of 8, a device
    return [
        Prediction(row, rate, rate / (row.k * each), row.rate / (row.k * published))
        for row, rate in zip(wanted, rates, strict=True)
    ]


def predict_all() -> list[Prediction]:
    """All tables and curves."""
    small = [p for table in SMALL for p in predict_small(table)]
    curves = [(table, model) for table in CURVES for model in models(table)]
    return small + [p for curve in curves for p in predict_curve(*curve)]


def predict_efficiencies() -> list[tuple]:
    """(source, model, k, published, modelled) for single points, from presets alone."""
    p100 = PRESETS["P100"]
    nvlink = Link(NVLINK, 80e9)  # NVIDIA P100 data sheet, SXM2: 160 GB/s both directions
    servers = {
        "Goyal et al. 2017": replace(p100, devices=8, link=nvlink, network=Link(NET, 50 * GBIT))
    }
    # Images a second on one P100 and batch: TensorFlow Benchmarks, May 2017 (DGX-1, synthetic).
    single = {"resnet-50": (195, 32), "inception-v3": (142, 64), "vgg-16": (154, 64)}
    points = []
    for source, model, base, k, published, _ in EFFICIENCIES:
        rate, batch = single[model]
        work = Work(GRADIENTS[model], seconds_per_example=1 / rate)
        machine = servers.get(source, p100)
        small, large = (step(work, machine, count, batch * count) for count in (base, k))
        points.append((source, model, k, published, small.seconds / large.seconds))
    return points


def main() -> None:
    """Print every published row with its prediction."""
    for p in predict_all():
        row = p.row
        line = f"{row.table:15} {row.model:13} {row.k:4} {row.use:9} step time {p.error:+6.1%}"
        if p.efficiency:
            line += f"   efficiency {p.published_efficiency:.3f}, modelled {p.efficiency:.3f}"
        print(line)
    for source, model, k, published, modelled in predict_efficiencies():
        print(f"{source:18} {model:13} {k:4} efficiency {published:.2f}, modelled {modelled:.2f}")
