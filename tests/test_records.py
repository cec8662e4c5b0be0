"""Records: written with their provenance, read back, and refused if they are none."""

import json
import os
import subprocess
from types import SimpleNamespace

import pytest

from d2lmgpu import cli, records
from d2lmgpu.lab.page import page
from d2lmgpu.profiles import PROFILES
from d2lmgpu.runs import Run

CHAPTER = """
import random

class d2l:
    from d2lmgpu.profiles import profile
    num_gpus = lambda: 0
    seed = random.seed

def init_params():
    return random.random()

params = init_params()

from d2lmgpu.devices import check_count, overlap
from d2lmgpu.runs import Run
def train(num_gpus, batch_size, lr, num_epochs):
    check_count(num_gpus, 0)
    n = num_epochs or 10
    return Run(num_gpus, batch_size, lr, 512, overlap(num_gpus, 0), [params] * n, [2.0] * n)
"""


@pytest.fixture
def chapter(tmp_path):
    path = tmp_path / "scratch" / "toy.ipynb"
    path.parent.mkdir()
    cell = {"cell_type": "code", "metadata": {"tags": ["define"]}, "source": CHAPTER}
    path.write_text(json.dumps({"cells": [cell]}))
    return path


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr("d2lmgpu.devices.num_cores", lambda: 2)
    monkeypatch.setenv("D2LMGPU_DEVICES", "restored afterwards")
    monkeypatch.delenv("D2LMGPU_DEVICES")


def test_a_recorded_run_says_what_where_and_how(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "full")
    path = records.record_chapter(chapter, tmp_path / "records")
    record = records.read(path)
    assert path.name == f"{records.name(records.machine())}-scratch-toy-full.json"
    assert record["machine"]["cores"] >= 1 and record["machine"]["cpu"]
    assert record["versions"]["numpy"] and record["commit"]
    assert record["profile"].startswith("full profile: ")
    assert "fashion-mnist" in record["data"].lower()
    assert record["command"].startswith("D2LMGPU_PROFILE=full ")
    assert record["command"].endswith(f"-m d2lmgpu record {chapter}")
    one, two = record["runs"]
    assert one["kind"] == two["kind"] == "measured" and len(one["accuracies"]) == 10
    assert (one["num_gpus"], two["num_gpus"], two["batch_size"], two["lr"]) == (1, 2, 256, 0.2)


@pytest.mark.parametrize("profile, epochs", [("quick", 6), ("test", 1)])
def test_the_grid_says_what_was_simulated(chapter, tmp_path, monkeypatch, profile, epochs):
    monkeypatch.setenv("D2LMGPU_PROFILE", profile)
    path = records.record_chapter(chapter, tmp_path / "records")
    assert path.stem.endswith(f"-scratch-toy-{profile}")
    runs = records.read(path)["runs"]
    settings = [
        (r["num_gpus"], r["batch_size"], r["lr"], r["kind"]) for r in runs if r["seed"] == 0
    ]
    assert settings == [
        (k, batch, lr, "simulated" if k == 4 else "measured")
        for k in (1, 2, 4)
        for batch, lr in ((128, 0.1), (256, 0.2), (512, 0.4))
    ]
    assert {len(run["seconds"]) for run in runs} == {epochs}
    shown = page("scratch-toy", path.parent)
    assert "simulated" in shown and "Data: " in shown


def test_runs_of_a_chapter_have_their_forecasts(chapter, tmp_path, monkeypatch):
    step = SimpleNamespace(samples_per_second=125.0)

    def measure(*training):
        assert "D2LMGPU_DEVICES" not in os.environ, "simulated devices must not be calibrated"
        return SimpleNamespace(devices=2), training

    monkeypatch.setattr("d2lmgpu.forecasts.training_of", lambda path: ("lenet", "torch"))
    monkeypatch.setattr("d2lmgpu.forecasts.measure", measure)
    monkeypatch.setattr("d2lmgpu.forecasts.predict", lambda *settings: SimpleNamespace(step=step))
    path = records.record_chapter(chapter, tmp_path / "records")
    runs = records.read(path)["runs"]
    assert {run["modelled_samples_per_second"] for run in runs} == {125.0}
    shown = page("scratch-toy", path.parent)
    assert shown.count("125 had been modelled") == shown.count("dashed: modelled") == 9


def test_every_seed_draws_its_own_parameters(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    runs = records.read(records.record_chapter(chapter, tmp_path / "records"))["runs"]
    drawn = {(run["seed"], *run["accuracies"]) for run in runs}
    assert [seed for seed, _ in sorted(drawn)] == [0, 1, 2] and len(dict(drawn)) == 3
    assert len({accuracy for _, accuracy in drawn}) == 3


def test_curves_are_those_of_the_asked_runs_by_setting():
    settings = [(1, 256, 0.2), (2, 256, 0.2), (2, 512, 0.4), (2, 128, 0.1), (2, 256, 0.2)]
    keys = ("num_gpus", "batch_size", "lr")
    runs = [dict(zip(keys, s)) | {"accuracies": [i, i]} for i, s in enumerate(settings)]
    assert records.curves({"runs": runs}, num_gpus=2, batch_sizes=(256, 512)) == {
        "batch 256, lr 0.2": [[1, 1], [4, 4]],
        "batch 512, lr 0.4": [[2, 2]],
    }


def test_on_gpus_nothing_is_simulated():
    runs = records.grid("concise", PROFILES["quick"], "gpu", 2)
    assert {num_gpus for num_gpus, *_ in runs} == {1, 2} and len(runs) == 3 + 3 * 3


def test_on_two_devices_batch_sizes_are_compared_over_three_seeds():
    runs = records.grid("concise", PROFILES["quick"], "cpu", 2)
    assert [(batch, seed) for k, batch, _, _, seed in runs if k == 2] == [
        (batch, seed) for batch in (128, 256, 512) for seed in (0, 1, 2)
    ]


def test_devices_that_were_chosen_are_not_exceeded(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu")
    assert {run[0] for run in records.grid("scratch", PROFILES["quick"], "cpu", 2)} == {1, 2}
    monkeypatch.delenv("D2LMGPU_DEVICES")
    assert max(run[0] for run in records.grid("scratch", PROFILES["quick"], "cpu", 2)) > 2


def test_the_command_says_in_a_line_what_cannot_be_recorded(tmp_path, capsys):
    assert cli.main(["record", str(tmp_path / "scratch" / "nosuch.ipynb")]) == 1
    assert cli.main(["record", str(tmp_path / "other" / "nosuch.ipynb")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "nosuch.ipynb" in said[0] and "only chapters in" in said[1] and len(said) == 2


def test_the_gluon_lab_is_recorded_at_the_rate_of_its_own_runs():
    runs = records.grid("lab", PROFILES["quick"], "cpu", 2)
    assert {(1, 64, 0.3, 5, 0), (2, 128, 0.3, 5, 0)} <= set(runs)
    assert {lr for _, _, lr, _, _ in runs} == {0.3}


def test_only_what_trains_is_recorded(tmp_path):
    with pytest.raises(records.RecordError, match="only chapters in scratch, concise, lab"):
        records.record_chapter(tmp_path / "scaling" / "cost-model.ipynb")


def test_a_commit_is_marked_by_changes_of_anything_but_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, record = tmp_path / "code.py", tmp_path / "records" / "x.json"
    record.parent.mkdir()
    code.write_text("1")
    record.write_text("1")
    author = ["-c", "user.name=A Name", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], check=True)
    record.write_text("2")
    assert not records.provenance("make x")["commit"].endswith("+")
    code.write_text("2")
    assert records.provenance("make x")["commit"].endswith("+")


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
    assert [run["num_gpus"] for run in records.read(written)["runs"]] == [1] * 3 + [2] * 9 + [4] * 3
