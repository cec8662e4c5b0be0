"""The memory of a training step, measured: ``python -m benchmarks.memory``, some minutes.

Three networks, three optimisers and three batches each, with the functions of chapters/memory/fits:
the peak of the allocator and the growth of a fresh process, in bytes.
"""

from pathlib import Path

from d2lmgpu.course import chapters
from d2lmgpu.records import store

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "memory" / "fits.ipynb"
BATCHES = {"dense": (128, 512, 1024), "ResNet-18": (16, 32, 48), "transformer": (2, 4, 8)}


def main() -> None:
    page = chapters.load(PAGE)
    record = store.provenance("python -m benchmarks.memory") | {"memory": []}
    for network, batches in BATCHES.items():
        for optimiser in page["OPTIMISERS"]:
            for batch_size in batches:
                totals, process = page["in_fresh_process"](
                    page["measure"], network, optimiser, batch_size
                )
                row = {"allocator": max(totals), "process": process}
                case = {"network": network, "optimiser": optimiser, "batch_size": batch_size}
                record["memory"].append(case | row)
                parts = page["predict"](*page["NETWORKS"][network], batch_size, optimiser)
                off = {what: f"{sum(parts.values()) / size - 1:+.1%}" for what, size in row.items()}
                print(*case.values(), off, flush=True)
    print("Written to", store.write(store.FOLDER, "memory", record))


if __name__ == "__main__":
    main()
