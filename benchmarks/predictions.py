"""Predicted and measured step times: ``python -m benchmarks.predictions`` on a machine at rest.

Each round calibrates the devices, measures the chapter's ``train`` on one device at other batch
sizes than those here, and only then runs what was predicted. Nothing is fitted to those runs.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from d2lmgpu import chapters, records
from d2lmgpu.calibration import calibrate
from d2lmgpu.forecasts import TRAININGS, measure_work, predict, short_runs, step_seconds

ROUNDS, IMAGES = 3, 1024
CASES = [(k, batch_size) for k in (1, 2) for batch_size in (128, 256, 512)]
NETWORKS = {"lenet": "LeNet, scratch", "resnet18": "ResNet-18, concise"}
LIMIT = 0.20


def one_round(network, framework):
    """Calibrate, predict, run: a row for each of `CASES`."""
    training = TRAININGS[network, framework]
    calibration = calibrate(framework, training.how)
    work, misfit = measure_work(network, framework)
    with short_runs(IMAGES):
        train = chapters.load(training.path)["train"]
        return [
            {
                "network": network,
                "framework": framework,
                "k": k,
                "batch_size": batch_size,
                "predicted": predict(calibration, work, k, batch_size).step.seconds,
                "measured": step_seconds(train, k, batch_size),
                "calibration_seconds": calibration.seconds,
                "misfit": max(misfit, calibration.misfit),
            }
            for k, batch_size in CASES
        ]


def run_one(framework, out):
    """All rounds of one framework, in this process; written to the file ``out``."""
    rows = [row for _ in range(ROUNDS) for network in NETWORKS
            for row in one_round(network, framework)]  # fmt: skip
    with open(out, "w") as file:
        json.dump(rows, file)


def line(framework, network, k, batch_size, rows):
    """Print one case: medians, and the error with its spread; whether it is within the limit."""
    errors = [row["predicted"] / row["measured"] - 1 for row in rows]
    predicted, measured = (
        1000 * median(r[what] for r in rows) for what in ("predicted", "measured")
    )
    spread = [1000 * row["measured"] for row in rows]
    good = abs(median(errors)) <= LIMIT
    print(f"{framework:6} {NETWORKS[network]:18} k = {k}, batch {batch_size}: "
          f"predicted {predicted:6.1f} ms, measured {measured:6.1f} ms ({min(spread):.1f} to "
          f"{max(spread):.1f}), error {median(errors):+4.0%} ({min(errors):+.0%} to "
          f"{max(errors):+.0%}) {'ok' if good else 'TOO FAR'}", flush=True)  # fmt: skip
    return good


def main():
    """Measure with every framework that is installed; returns how many cases are too far off."""
    record = records.provenance("python -m benchmarks.predictions") | {"predictions": []}
    environment = {"D2LMGPU_PROFILE": "full" if record["machine"]["gpus"] else "quick"}
    if len(record["machine"]["gpus"]) == 1:
        print("on two CPU cores, there is one GPU")
        environment = {"D2LMGPU_PROFILE": "quick", "D2LMGPU_DEVICES": "cpu"}
    good = []
    for framework in ("torch", "mxnet"):
        if importlib.util.find_spec(framework) is None:
            print(f"{framework}: left out, it is not installed")
            continue
        with tempfile.NamedTemporaryFile("r") as out:
            subprocess.run(
                [sys.executable, "-m", "benchmarks.predictions", framework, out.name],
                check=True, env=os.environ | {"MPLBACKEND": "agg"} | environment,
            )  # fmt: skip
            rows = json.load(out)
        record["predictions"] += rows
        cases = {}
        for row in rows:
            cases.setdefault((row["network"], row["k"], row["batch_size"]), []).append(row)
        good += [line(framework, *case, found) for case, found in cases.items()]
        print(f"{framework}: calibrating took at most "
              f"{max(row['calibration_seconds'] for row in rows):.1f} s; its fits and those of the "
              f"networks hold within {median(row['misfit'] for row in rows):.0%}")  # fmt: skip
    print("Written to", records.write("records", "predictions", record))
    return good.count(False)


if __name__ == "__main__":
    sys.exit(run_one(*sys.argv[1:]) if len(sys.argv) == 3 else main())
