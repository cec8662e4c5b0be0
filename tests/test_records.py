"""Records: written with their provenance, read back, and refused if they are none."""

import json

import pytest

from d2lmgpu import cli, records
from d2lmgpu.runs import Run

CHAPTER = """
class d2l:
    @staticmethod
    def profile():
        from d2lmgpu.profiles import PROFILES
        return PROFILES["test"]

from d2lmgpu.runs import Run
def train(num_gpus, batch_size, lr):
    return Run(num_gpus, batch_size, lr, 512, "one device", [0.5], [2.0])
"""


@pytest.fixture
def chapter(tmp_path):
    path = tmp_path / "scratch" / "toy.ipynb"
    path.parent.mkdir()
    cell = {"cell_type": "code", "metadata": {"tags": ["define"]}, "source": CHAPTER}
    path.write_text(json.dumps({"cells": [cell]}))
    return path


def test_a_recorded_run_says_what_where_and_how(chapter, tmp_path):
    path = records.record_chapter(chapter, tmp_path / "records", [(1, 256, 0.2)])
    record = records.read(path)
    assert path.name == f"{records.name(records.machine())}-scratch-toy-test.json"
    assert record["machine"]["cores"] >= 1 and record["machine"]["cpu"]
    assert record["versions"]["numpy"] and record["commit"]
    assert record["command"].endswith(f"-m d2lmgpu record {chapter}")
    (run,) = record["runs"]
    assert run["kind"] == "measured" and run["accuracies"] == [0.5] and run["batch_size"] == 256


def test_machines_are_named_by_gpus_or_cores():
    assert records.name({"gpus": [], "cores": 2}) == "cpu-2-cores"
    gpus = ["GPU 0: NVIDIA H200", "GPU 1: NVIDIA H200"]
    assert records.name({"gpus": gpus, "cores": 16}) == "2xnvidia-h200"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1}'])
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(records.RecordError, match=r"x\.json"):
        records.read(path)


def test_a_run_reports_the_median_of_its_last_epochs():
    run = Run(2, 256, 0.2, 6000, "in parallel", [0.1, 0.7, 0.2, 0.8], [9.0, 1.0, 3.0])
    assert run.accuracy == 0.7
    assert run.samples_per_second == 2000
    assert str(run) == (
        "2 devices, in parallel, batch 256, lr 0.2: test accuracy 0.700 after 4 epochs, "
        "2,000 samples/s"
    )


def test_a_simulated_run_claims_no_speed():
    assert "says nothing about speedup" in str(Run(4, 64, 0.1, 512, "simulated", [0.5], [1.0]))


def test_the_command_writes_a_record(chapter, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["record", str(chapter)]) == 0
    written = capsys.readouterr().out.splitlines()[-1].removeprefix("Written to ")
    assert [run["num_gpus"] for run in records.read(written)["runs"]] == [1, 2]
