"""The calculator of chapters/memory/fits against real processes, and against what was recorded."""

import pytest
from soaking import sample

from d2lmgpu.course import chapters
from d2lmgpu.records import store

PAGE = store.FOLDER.parent / "chapters" / "memory" / "fits.ipynb"
RECORD = store.read(store.FOLDER / "cpu-2-cores-memory.json")


@pytest.fixture(scope="module")
def page():
    return chapters.load(PAGE)


def predicted(page, network, optimiser, batch_size):
    return sum(page["predict"](*page["NETWORKS"][network], batch_size, optimiser).values())


@pytest.mark.parametrize(
    "network, optimizer, batch_size",
    sample(1, [("transformer", "Adam", 4), ("dense", "momentum", 128), ("ResNet-18", "SGD", 16)]),
)
def test_the_peak_is_as_predicted(page, network, optimizer, batch_size):
    case = network, optimizer, batch_size
    totals, process = page["in_fresh_process"](page["measure"], *case)
    assert abs(predicted(page, *case) / max(totals) - 1) < 0.10
    assert abs(predicted(page, *case) / process - 1) < 0.20


def test_all_cases_are_recorded_and_as_predicted(page):
    rows = {(row["network"], row["optimiser"], row["batch_size"]): row for row in RECORD["memory"]}
    assert len(rows) == 27 and not RECORD["commit"].endswith("+")
    assert {case[:2] for case in rows} == {
        (n, o) for n in page["NETWORKS"] for o in page["OPTIMISERS"]
    }
    for case, row in rows.items():
        assert abs(predicted(page, *case) / row["allocator"] - 1) < 0.10
        assert abs(predicted(page, *case) / row["process"] - 1) < 0.20
