"""Predicted and measured step times: ``python -m benchmarks.predictions`` on a machine at rest.

Each round calibrates the devices, measures the chapter's ``train`` on one device at other batch
sizes than those here, and only then runs what was predicted. Nothing is fitted to those runs.
"""

import json
import sys
from pathlib import Path
from statistics import median

from benchmarks.measure import installed, result_of, verdict
from d2lmgpu.costmodel import forecast
from d2lmgpu.costmodel.measure import calibrate
from d2lmgpu.costmodel.short_runs import short_runs, step_seconds
from d2lmgpu.course import chapters
from d2lmgpu.course.forecasting import measure_work, notebook
from d2lmgpu.records import store

ROUNDS, IMAGES = 3, 1024
CASES = [(k, batch_size) for k in (1, 2) for batch_size in (128, 256, 512)]
NETWORKS = {"lenet": "LeNet, scratch", "resnet18": "ResNet-18, concise"}
LIMIT = 0.20


def one_round(network, framework) -> list:
    """Calibrate, predict, run: a row for each of `CASES`."""
    calibration = calibrate(framework, forecast.training(network, framework).workers)
    work, fit_error = measure_work(network, framework)
    with short_runs(IMAGES):
        train = chapters.load(notebook(network, framework))["train"]
        return [
            {
                "network": network,
                "framework": framework,
                "k": k,
                "batch_size": batch_size,
                "predicted": forecast.predict(calibration, work, k, batch_size).step.seconds,
                "measured": step_seconds(train, k, batch_size),
                "calibration_seconds": calibration.seconds,
                "fit_error": max(fit_error, calibration.fit_error),
            }
            for k, batch_size in CASES
        ]


def run_one(framework, out) -> None:
    """All rounds of one framework, in this process; written to the file ``out``."""
    rows = [
        row for _ in range(ROUNDS) for network in NETWORKS for row in one_round(network, framework)
    ]
    Path(out).write_text(json.dumps(rows))


def within_limit(framework, network, k, batch_size, rows) -> bool:
    """Print what was predicted and measured of one case; whether the error is within its limit."""
    errors = [row["predicted"] / row["measured"] - 1 for row in rows]
    predicted, measured = ([1000 * row[what] for row in rows] for what in ("predicted", "measured"))
    case = f"{framework:6} {NETWORKS[network]:18} k = {k}, batch {batch_size}"
    times = (
        f"predicted {median(predicted):6.1f} ms, measured {median(measured):6.1f} ms "
        f"({min(measured):.1f} to {max(measured):.1f})"
    )
    return verdict(f"{case}: {times}, error", errors, LIMIT, "+.0%")


def main() -> int:
    """Measure with every framework that is installed; returns how many cases are too far off."""
    record = store.provenance("python -m benchmarks.predictions") | {"predictions": []}
    settings = {"D2LMGPU_PROFILE": "full" if record["machine"]["gpus"] else "quick"}
    if len(record["machine"]["gpus"]) == 1:
        print("on two CPU cores, there is one GPU")
        settings = {"D2LMGPU_PROFILE": "quick", "D2LMGPU_DEVICES": "cpu"}
    good = []
    for framework in filter(installed, ("torch", "mxnet")):
        rows = result_of("benchmarks.predictions", framework, **settings)
        record["predictions"] += rows
        cases = {}
        for row in rows:
            cases.setdefault((row["network"], row["k"], row["batch_size"]), []).append(row)
        good += [within_limit(framework, *case, repeats) for case, repeats in cases.items()]
        print(
            f"{framework}: calibrating took at most "
            f"{max(row['calibration_seconds'] for row in rows):.1f} s; its fits and those of the "
            f"networks hold within {median(row['fit_error'] for row in rows):.0%}"
        )
    print("Written to", store.write("records", "predictions", record))
    return good.count(False)


if __name__ == "__main__":
    sys.exit(run_one(*sys.argv[1:]) if len(sys.argv) == 3 else main())
