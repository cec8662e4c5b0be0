"""Run every benchmark, each in a process of its own; print the ratios and write them to records/.

On a CPU the comparison with D2L's loops runs on one core, loader included. Two devices are compared
with one by their best turns of a few batches: see ``benchmarks.measure.Timed``.
"""

import contextlib
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.d2l_files import provide
from benchmarks.measure import installed, result_of
from d2lmgpu.machine import hardware
from d2lmgpu.records import store

ROOT = Path(__file__).resolve().parents[1]
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
# D2L's loops warn page after page: of their own axes, and of four workers to load the data.
QUIET = {
    "PYTHONWARNINGS": "ignore:::d2l.torch,ignore:::d2l.mxnet,ignore:::torch.utils.data.dataloader"
}
SETTINGS = QUIET | {"D2LMGPU_PROFILE": "full", "PYTHONPATH": str(ROOT)}


def has_bf16() -> bool:
    """Whether this CPU multiplies bf16 numbers itself (AVX512-BF16 or AMX)."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags.read_text().split())


def run_one(framework, what, out) -> None:
    """Run one benchmark in this process and write its result to the file ``out``."""
    if what == "against_d2l" and not hardware.machine()["gpus"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(provide(folder)):
        loops = importlib.import_module(f"benchmarks.{framework}_loops")
        Path(out).write_text(json.dumps(getattr(loops, what)()))


def report(title, pair, gate) -> bool:
    """Print one ratio; whether it is what is expected, if anything is."""
    wanted = f" (at least {gate})" if gate else ""
    rates = f"{pair['first']:,.0f} -> {pair['second']:,.0f} samples/s"
    print(f"{title}: {rates}, ratio {pair['ratio']:.2f}{wanted}, of {pair['ratios']}")
    if "ceiling" in pair:
        print(f"  two processes that share nothing, a core each: {pair['ceiling']:.2f}")
    return gate is None or pair["ratio"] >= gate


def run_all() -> int:
    """Run the suite; returns the number of ratios below what is expected."""
    record = store.provenance("make bench") | {"benchmarks": {}}
    gpus, good = record["machine"]["gpus"], []
    gates = GATES | (GATES_WITH_GPU if gpus else {})
    if not gpus and not has_bf16():
        del gates[BF16]
        print("This CPU has no bf16 instructions: bf16 is reported, nothing is expected of it.")
    frameworks = [framework for framework in ("torch", "mxnet") if installed(framework)]
    for what, cpu in (("against_d2l", False), ("two_devices", len(gpus) == 1)):
        if cpu:
            print(f"{what}: on two CPU cores, there is one GPU")
        settings = SETTINGS | ({"D2LMGPU_DEVICES": "cpu"} if cpu else {})
        for framework in frameworks:
            result = result_of("benchmarks", framework, what, **settings)
            record["benchmarks"][f"{framework} {what}"] = result
            for name, pair in result["pairs"].items():
                title = f"{framework} {what}, {name}"
                good.append(report(title, pair, gates.get(title)))
            for name, value in result.items():
                if name != "pairs":
                    print(f"{framework} {what}, {name}: {value}")
    print("Written to", store.write("records", "bench", record))
    return good.count(False)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run_one(*sys.argv[1:])
    else:
        sys.exit(1 if run_all() else 0)
