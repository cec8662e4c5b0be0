"""What is recorded in records/ is what the course claims."""

import pytest

from d2lmgpu.records import store

FULL = sorted(store.FOLDER.glob("*scratch*-full.json"))


def test_both_frameworks_are_recorded():
    assert {path.stem.split("-")[-2] for path in FULL} == {"mxnet", "pytorch"}


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_the_published_recipe_reaches_the_published_accuracy(path):
    record = store.read(path)
    assert [run["num_gpus"] for run in record["runs"]] == [1, 2]
    for run in record["runs"]:
        assert run["num_samples"] == 60_000 and len(run["accuracies"]) == 10
        assert run["kind"] == "measured" and not record["commit"].endswith("+")
        assert 0.78 <= run["accuracies"][-1] <= 0.87
