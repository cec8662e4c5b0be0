"""Run every benchmark, each in a process of its own; print the ratios and write them to records/.

On a CPU the comparison with D2L's loops runs on one core, loader included. Two devices are compared
with one by their best turns of a few batches: see ``benchmarks.measure.Timed``.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import d2l_files
from d2lmgpu import records

SUITE = [("torch", "against_d2l"), ("mxnet", "against_d2l"),
         ("torch", "two_devices"), ("mxnet", "two_devices")]  # fmt: skip
BF16 = "torch against_d2l, LeNet, bf16 and channels-last"
GATES = {
    "torch against_d2l, LeNet, equal arithmetic": 1.1,
    BF16: 2.0,
    "mxnet against_d2l, LeNet, equal arithmetic": 1.1,
    "torch two_devices, LeNet from scratch": 1.6,
    "torch two_devices, ResNet-18 (width 8), DDP": 1.6,
    "mxnet two_devices, LeNet from scratch": 1.6,
}
GATES_WITH_GPU = {
    BF16: 10.0,
    "torch against_d2l, ResNet-18, bf16 and channels-last": 5.0,
}


def has_bf16():
    """Whether this CPU multiplies bf16 numbers itself (AVX512-BF16 or AMX)."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags.read_text().split())


def run_one(framework, what, out):
    """Run one benchmark in this process and write its result to the file ``out``."""
    if what == "against_d2l" and not records.machine()["gpus"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder:
        home = os.getcwd()
        d2l_files.provide(folder)
        result = getattr(importlib.import_module(f"benchmarks.{framework}_loops"), what)()
        os.chdir(home)
    with open(out, "w") as file:
        json.dump(result, file)


def run_all():
    """Run the suite; returns the number of ratios below what is expected."""
    record = records.provenance("make bench") | {"benchmarks": {}}
    gates = GATES | (GATES_WITH_GPU if record["machine"]["gpus"] else {})
    if not record["machine"]["gpus"] and not has_bf16():
        del gates[BF16]
        print("This CPU has no bf16 instructions: bf16 is reported, nothing is expected of it.")
    folder, below = tempfile.mkdtemp(), 0
    for framework, what in SUITE:
        if importlib.util.find_spec(framework) is None:
            print(f"{framework} {what}: left out, {framework} is not installed")
            continue
        environment = os.environ | {"D2LMGPU_PROFILE": "full", "MPLBACKEND": "agg"}
        if what == "two_devices" and len(record["machine"]["gpus"]) == 1:
            print(f"{framework} {what}: on two CPU cores, there is one GPU")
            environment["D2LMGPU_DEVICES"] = "cpu"
        out = os.path.join(folder, "result.json")
        subprocess.run(
            [sys.executable, "-m", "benchmarks", framework, what, out], check=True, env=environment
        )
        with open(out) as file:
            result = record["benchmarks"][f"{framework} {what}"] = json.load(file)
        for name, pair in result["pairs"].items():
            title = f"{framework} {what}, {name}"
            gate = gates.get(title)
            below += gate is not None and pair["ratio"] < gate
            wanted = f" (at least {gate})" if gate else ""
            rates = f"{pair['first']:,.0f} -> {pair['second']:,.0f} samples/s"
            print(f"{title}: {rates}, ratio {pair['ratio']:.2f}{wanted}, of {pair['ratios']}")
            if "ceiling" in pair:
                print(f"  two processes that share nothing, a core each: {pair['ceiling']:.2f}")
        for name, value in result.items():
            if name != "pairs":
                print(f"{framework} {what}, {name}: {value}")
    shutil.rmtree(folder)
    print("Written to", records.write("records", "bench", record))
    return below


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run_one(*sys.argv[1:])
    else:
        sys.exit(1 if run_all() else 0)
