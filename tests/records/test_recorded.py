"""What is recorded in records/ is what the course claims."""

import pytest

from d2lmgpu.costmodel import forecast
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


def test_the_errors_of_forecasts_are_those_recorded():
    recorded = store.read(store.FOLDER / "cpu-2-cores-predictions.json")["predictions"]
    assert {(p["network"], p["framework"]) for p in recorded} == set(forecast.TRAININGS)
    errors = [p["predicted"] / p["measured"] - 1 for p in recorded]
    assert (round(min(errors), 2), round(max(errors), 2)) == forecast.RECORDED_ERRORS
