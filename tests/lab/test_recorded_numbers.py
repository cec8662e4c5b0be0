"""Records as the browser gets them: every one that is kept here, and what some of them lack."""

import json

import pytest

from d2lmgpu.lab.record import recorded
from d2lmgpu.machine.devices import RunError
from d2lmgpu.records import store

WITH_RUNS = [path for path in sorted(store.FOLDER.glob("*.json")) if store.read(path).get("runs")]
ABOUT = {
    "schema": 2,
    "versions": {},
    "commit": "0123456789abcdef",
    "date": "now",
    "command": "python -m d2lmgpu record chapters/scratch/pytorch.ipynb",
    "machine": {"cpu": "A CPU", "cores": 2, "memory_gib": 8, "gpus": [], "system": "Linux"},
}
RUN = {
    "num_gpus": 1,
    "batch_size": 64,
    "lr": 0.1,
    "num_samples": 600,
    "sharing": "one device",
    "accuracies": [0.5, 0.75],
    "seconds": [2.0, 3.0],
    "kind": "measured",
    "round": 0,
}


def sent(record):
    return json.loads(json.dumps(recorded(record), allow_nan=False, ensure_ascii=False))


@pytest.mark.parametrize("path", WITH_RUNS, ids=lambda path: path.stem)
def test_every_record_that_is_kept_here_can_be_sent(path):
    record = store.read(path)
    got = sent(record)
    assert len(got["runs"]) == len(record["runs"]) and record["command"] == got["command"]
    assert "CPU cores" in got["name"] and " in " in got["name"]
    assert sorted(i for row in got["table"]["rows"] for i in row["runs"]) == [
        run["id"] for run in got["runs"]
    ]
    for run, kept in zip(got["runs"], record["runs"]):
        assert [point[3] for point in run["curves"]["test accuracy"]] == kept["accuracies"]
        assert run["curves"]["test accuracy"][-1][1] == pytest.approx(sum(kept["seconds"]))
        simulated = kept["sharing"] == "simulated"
        assert run["timing"] == ("simulated" if simulated else "measured")
    explained = {(s["num_gpus"], s["median"]) for s in record.get("speedups", ()) if s["explained"]}
    shown = {(s["num_gpus"], s["median"]) for s in got["speedups"] if s["num_gpus"] > 1}
    assert shown == explained
    for speedup in got["speedups"]:
        assert 0 < speedup["low"] <= speedup["median"] <= speedup["high"]


def test_there_are_records_to_try():
    assert len(WITH_RUNS) >= 5


def test_a_run_has_its_forecast_and_its_curves():
    record = ABOUT | {"runs": [RUN | {"modelled_samples_per_second": 400.0}]}
    (run,) = sent(record)["runs"]
    assert (run["id"], run["row"], run["status"], run["forecast"]) == (1, 1, "finished", 400)
    assert run["curves"] == {
        "test accuracy": [[1, 2, 600, 0.5], [2, 5, 1200, 0.75]],
        "samples/s": [[1, 2, 600, 300], [2, 5, 1200, 200]],
    }
    assert sent(record)["name"] == "2 CPU cores (A CPU): LeNet in PyTorch"


@pytest.mark.parametrize(
    "lacking, curves",
    [
        ({"accuracies": []}, {"samples/s"}),
        ({"seconds": []}, {"test accuracy"}),
        ({"num_samples": None}, {"test accuracy"}),
        ({"seconds": [0.0, 0.0]}, {"test accuracy"}),
        ({"accuracies": [], "seconds": []}, set()),
        ({"accuracies": [0.5], "seconds": [1.0, 2.0, 3.0]}, {"test accuracy", "samples/s"}),
    ],
)
def test_what_a_record_lacks_is_no_curve(lacking, curves):
    (run,) = sent(ABOUT | {"runs": [RUN | lacking]})["runs"]
    assert set(run["curves"]) == curves


def test_a_record_of_nothing_is_empty_and_one_of_no_numbers_is_refused():
    got = sent(ABOUT)
    assert (got["runs"], got["speedups"], got["table"]["rows"]) == ([], [], [])
    with pytest.raises(RunError):
        recorded(ABOUT | {"runs": [RUN | {"seconds": [float("nan")]}]})
