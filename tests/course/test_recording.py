"""Records of a chapter's own train: what is measured, in which order, and what is said of it."""

import json
import os
from types import SimpleNamespace

import pytest

from d2lmgpu import __main__ as cli
from d2lmgpu.course import recording
from d2lmgpu.course.chapters import ChapterError
from d2lmgpu.lab.page import page
from d2lmgpu.machine.hardware import machine
from d2lmgpu.machine.profiles import PROFILES
from d2lmgpu.records import store

CHAPTER = """
import random

class d2l:
    from d2lmgpu.machine.profiles import profile
    num_gpus = lambda: 0
    seed = random.seed

def init_params():
    return random.random()

params = init_params()

from d2lmgpu.machine.devices import first, sharing
from d2lmgpu.records.run import Run
def train(num_gpus, batch_size, lr, num_epochs):
    first(num_gpus, 0)
    n = num_epochs or 10
    return Run(num_gpus, batch_size, lr, 512, sharing(num_gpus, 0), [params] * n, [2.0] * n)
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
    monkeypatch.setattr("d2lmgpu.machine.devices.num_cores", lambda: 2)
    monkeypatch.setenv("D2LMGPU_DEVICES", "restored afterwards")
    monkeypatch.delenv("D2LMGPU_DEVICES")


def test_a_recorded_run_says_what_where_and_how(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "full")
    path = recording.record_chapter(chapter, tmp_path / "records")
    record = store.read(path)
    assert path.name == f"{store.name(machine())}-scratch-toy-full.json"
    assert record["machine"]["cores"] >= 1 and record["machine"]["cpu"]
    assert record["versions"]["numpy"] and record["commit"]
    assert record["profile"].startswith("full profile: ")
    assert "fashion-mnist" in record["data"].lower()
    assert record["command"].startswith("D2LMGPU_PROFILE=full ")
    assert record["command"].endswith(f"-m d2lmgpu record {chapter}")
    single, double = record["runs"]
    assert single["kind"] == double["kind"] == "measured" and len(single["accuracies"]) == 10
    assert single["unsteady"] == "", "its epochs all take two seconds, and it ends at once"
    assert (single["num_gpus"], double["num_gpus"], double["batch_size"], double["lr"]) == (
        1,
        2,
        256,
        0.2,
    )


@pytest.mark.parametrize("profile, epochs", [("quick", 6), ("test", 1)])
def test_the_grid_says_what_was_simulated(chapter, tmp_path, monkeypatch, profile, epochs):
    monkeypatch.setenv("D2LMGPU_PROFILE", profile)
    path = recording.record_chapter(chapter, tmp_path / "records")
    assert path.stem.endswith(f"-scratch-toy-{profile}")
    runs = store.read(path)["runs"]
    first = [run for run in runs if run["seed"] == 0]
    assert [(r["num_gpus"], r["batch_size"], r["lr"], r["kind"], r["round"]) for r in first] == [
        (k, batch, lr, "simulated" if k == 4 else "measured", None if k == 4 else 0)
        for ks in ((1, 2), (4,))
        for batch, lr in ((128, 0.1), (256, 0.2), (512, 0.4))
        for k in ks
    ]
    assert {len(run["seconds"]) for run in runs} == {epochs}
    shown = page("scratch-toy", path.parent)
    assert "simulated" in shown and "Data: " in shown


def test_runs_of_a_chapter_have_their_forecasts(chapter, tmp_path, monkeypatch):
    step = SimpleNamespace(samples_per_second=125.0)

    def measure(*training):
        assert "D2LMGPU_DEVICES" not in os.environ, "simulated devices must not be calibrated"
        return SimpleNamespace(devices=2), training

    forecast = "d2lmgpu.costmodel.forecast."
    monkeypatch.setattr(forecast + "training_of", lambda path: ("lenet", "torch"))
    monkeypatch.setattr("d2lmgpu.course.forecasting.measure", measure)
    monkeypatch.setattr(forecast + "predict", lambda *settings: SimpleNamespace(step=step))
    path = recording.record_chapter(chapter, tmp_path / "records")
    runs = store.read(path)["runs"]
    assert {run["modelled_samples_per_second"] for run in runs} == {125.0}
    shown = page("scratch-toy", path.parent)
    assert '"forecast":125.0' in shown


def test_every_seed_draws_its_own_parameters(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    runs = store.read(recording.record_chapter(chapter, tmp_path / "records"))["runs"]
    drawn = {(run["seed"], *run["accuracies"]) for run in runs}
    assert [seed for seed, _ in sorted(drawn)] == [0, 1, 2, 3, 4] and len(dict(drawn)) == 5
    assert len({accuracy for _, accuracy in drawn}) == 5


def test_on_gpus_nothing_is_simulated():
    runs = recording.grid("concise", PROFILES["quick"], "gpu", 2)
    assert {num_gpus for num_gpus, *_ in runs} == {1, 2} and len(runs) == 2 * 3 * 5


@pytest.mark.parametrize("kind, count", [("cpu", 2), ("gpu", 4), ("gpu", 8)])
def test_one_and_several_devices_take_turns_as_often(kind, count):
    runs = recording.grid("concise", PROFILES["quick"], kind, count)
    measured = [run for run in runs if run[0] <= count]
    ks = sorted({run[0] for run in measured})
    rounds = [measured[i : i + len(ks)] for i in range(0, len(measured), len(ks))]
    for turn in rounds:
        assert sorted(k for k, *_ in turn) == ks
        assert len({run[1:] for run in turn}) == 1, "one batch, one rate, one seed"
    first = [turn[0][0] for turn in rounds[:5]]
    assert first[0] == first[2] != first[1] == first[3], "nobody is always the first"
    assert [turn[0][4] for turn in rounds] == [0, 1, 2, 3, 4] * 3


def test_a_record_marks_what_is_not_explained(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    seconds = {(1, 128): 2.0, (2, 128): 1.1, (1, 256): 2.0, (2, 256): 0.8}
    source = CHAPTER.replace("[2.0] * n", f"[{seconds}.get((num_gpus, batch_size), 3.0)] * n")
    cell = {"cell_type": "code", "metadata": {"tags": ["define"]}, "source": source}
    chapter.write_text(json.dumps({"cells": [cell]}))
    path = recording.record_chapter(chapter, tmp_path / "records")
    (sure, odd, none) = store.read(path)["speedups"]
    assert (sure["num_gpus"], sure["over"], sure["batch_size"]) == (2, 1, 128)
    assert sure["scaling"] == "strong" and sure["explained"]
    assert sure["ratios"] == pytest.approx([2.0 / 1.1] * 5)
    assert odd["median"] == pytest.approx(2.5) and odd["explained"] is False
    assert none["median"] == 1
    shown = page("scratch-toy", path.parent)
    assert "1.82" in shown and "2.50" not in shown and "not explained" in shown


@pytest.mark.parametrize(
    "source, words",
    [
        (CHAPTER.replace("def train", "def trains"), "no train"),
        (CHAPTER + "\ndef train(*settings): return None", "returned None; a Run is needed"),
        (CHAPTER + "\ndef train(*settings): return {'accuracies': []}", "a Run is needed"),
        (CHAPTER.replace("class d2l", "class other"), "no d2l"),
    ],
)
def test_a_chapter_that_does_not_train_is_refused(chapter, tmp_path, source, words):
    cell = {"cell_type": "code", "metadata": {"tags": ["define"]}, "source": source}
    chapter.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises((store.RecordError, ChapterError), match=words):
        recording.record_chapter(chapter, tmp_path / "records")
    assert "D2LMGPU_DEVICES" not in os.environ


@pytest.mark.parametrize("before", [None, "auto"])
def test_recording_leaves_the_devices_as_they_were(chapter, tmp_path, monkeypatch, before):
    if before:
        monkeypatch.setenv("D2LMGPU_DEVICES", before)
    recording.record_chapter(chapter, tmp_path / "records")
    assert os.environ.get("D2LMGPU_DEVICES") == before


def test_devices_that_were_chosen_are_not_exceeded(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu")
    assert {run[0] for run in recording.grid("scratch", PROFILES["quick"], "cpu", 2)} == {1, 2}
    monkeypatch.delenv("D2LMGPU_DEVICES")
    assert max(run[0] for run in recording.grid("scratch", PROFILES["quick"], "cpu", 2)) > 2


def test_the_command_says_in_a_line_what_cannot_be_recorded(tmp_path, capsys):
    assert cli.main(["record", str(tmp_path / "scratch" / "nosuch.ipynb")]) == 1
    assert cli.main(["record", str(tmp_path / "other" / "nosuch.ipynb")]) == 1
    output = capsys.readouterr().err.splitlines()
    assert "nosuch.ipynb" in output[0] and "only chapters in" in output[1] and len(output) == 2


def test_the_gluon_lab_is_recorded_at_the_rate_of_its_own_runs():
    runs = recording.grid("lab", PROFILES["quick"], "cpu", 2)
    assert {(1, 64, 0.3, 5, 0), (2, 128, 0.3, 5, 0)} <= set(runs)
    assert {lr for _, _, lr, _, _ in runs} == {0.3}


def test_only_what_trains_is_recorded(tmp_path):
    with pytest.raises(store.RecordError, match="only chapters in scratch, concise, lab"):
        recording.record_chapter(tmp_path / "scaling" / "cost-model.ipynb")


def test_the_command_writes_a_record(chapter, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["record", str(chapter)]) == 0
    written = capsys.readouterr().out.splitlines()[-1].removeprefix("Written to ")
    assert [run["num_gpus"] for run in store.read(written)["runs"]] == (
        [1, 2, 2, 1, 1, 2, 2, 1, 1, 2] * 3 + [4] * 3
    )
