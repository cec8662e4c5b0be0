"""What the lab tells of a run: its prints, the line of its error, that it diverged or was unsteady,
and what is missing to compare it."""

import threading

import pytest
import trains
from notebook import notebook
from recording import idle
from trains import trains_a_little

from d2lmgpu.lab import TrainingLab, speedup_question, wire, words
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.why import why


def ran(train, **settings):
    lab = LabModel({"Python": train}, **settings)
    lab.run()
    idle(lab)
    return lab


def test_what_a_run_prints_is_told_also_when_it_succeeds():
    lab = ran(trains.prints_and_trains, lr=0.25)
    assert lab.printed == (2, "lr 0.25\ndone") and lab.details == ""
    assert wire.state(lab)["printed"] == {"lines": 2, "text": "lr 0.25\ndone"}
    prints = []
    lab.observe(lambda change: prints.append(change.new), "printed")
    lab.run()
    idle(lab)
    assert prints[0] == (0, ""), "the prints of the run before are gone"


def test_what_a_run_prints_is_told_while_it_runs():
    lab, has_printed = LabModel({"Python": trains.prints_and_goes_on}), threading.Event()
    lab.observe(lambda change: change.new == (1, "so far") and has_printed.set(), "printed")
    lab.run()
    assert has_printed.wait(60) and lab.status == "running"
    lab.stop()
    idle(lab)
    assert lab.printed == (1, "so far")


def test_all_lines_are_counted_though_only_the_last_are_told():
    lab = TrainingLab(
        notebook("""
def train(num_gpus, batch_size, lr):
    for line in range(4000):
        print(f"line {line}")
""").train
    ).model
    lab.run()
    idle(lab)
    lines, text = lab.printed
    assert lines == 4000 and text.endswith("line 3999") and "line 3000" not in text


@pytest.mark.parametrize(
    "train, line",
    [
        (trains.names_what_is_not_there, "np.zeros(3).reshape(undefined_name)"),
        (trains.raises_in_a_library, "np.vstack([])"),
        (trains.raises_in_the_package, "DataIter(np.zeros(3), np.zeros(2), "),
    ],
)
def test_an_error_names_the_reader_s_own_line(train, line):
    message, code = ran(train).message, train.__code__
    assert f"in {train.__name__}, line {code.co_firstlineno + 1} of trains.py: `{line}" in message


def test_a_run_that_diverged_is_called_so():
    for lr, diverged in ((50.0, True), (2.0, True), (0.5, False)):
        lab = ran(trains.diverges, lr=lr)
        assert (lab.runs[0].diverged, "diverged" in lab.message) == (diverged, diverged)
        (row,) = wire.table(lab)["rows"]
        assert ("diverged" in row["cells"]["Test accuracy"]) is diverged
        assert wire.runs(lab)[0]["diverged"] is diverged


@pytest.mark.parametrize("slower, unsteady", [(1.2, False), (1.3, True)])
def test_a_run_whose_steps_differ_is_unsteady(slower, unsteady):
    lab = ran(trains.takes_steps, lr=slower)
    assert bool(lab.runs[0].unsteady) is unsteady
    assert ("1.3 times as long" in why(lab)) is unsteady
    (record,) = lab.to_record()["runs"]
    assert bool(record["unsteady"]) is unsteady


def with_speeds(lab, *speeds):
    """The lab after runs on 1, 2, 1, 2 … devices that it calls unsteady, where there is a word."""
    for number, unsteady in enumerate(speeds):
        lab.num_gpus = 1 + number % 2
        lab.run()
        idle(lab)
        lab.runs[-1].unsteady = unsteady
    lab.runs = [*lab.runs]
    return lab


@pytest.mark.needs("cores")
def test_an_unsteady_run_is_called_so_explains_nothing_and_judges_no_prediction(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("D2LMGPU_PREDICTIONS", str(tmp_path))
    lab = LabModel({"Python": trains_a_little}, num_gpus=2)
    lab.num_devices = 2
    speedup_question.lock(lab, 1.0)
    with_speeds(lab, "", "it jumped")
    assert "it jumped" in why(lab) and "row 2 was unsteady" in words.table_texts(lab.table())[2][0]
    assert [run["unsteady"] for run in wire.runs(lab)] == [False, True]
    known = speedup_question.prediction(lab)
    assert known["happened"] is None and "unsteady" in known["remark"]
    lab.batch_size = 512
    known = speedup_question.prediction(lab)
    assert known["remark"] == "", "where nothing is locked the field stays"
    lab.batch_size = 256
    with_speeds(lab, "", "")
    known = speedup_question.prediction(lab)
    assert known["happened"]["value"] == 1 and "unsteady" not in known["remark"]


@pytest.mark.needs("cores")
def test_the_run_that_a_row_lacks_is_started_and_the_settings_stay():
    lab = LabModel({"Python": trains_a_little}, num_gpus=2, batch_size=32, lr=0.3, num_epochs=2)
    lab.run()
    idle(lab)
    assert wire.table(lab)["rows"][0]["alone"] and lab.table()[0].speedup is None
    lab.batch_size = 64
    lab.run_one_device(1)
    idle(lab)
    single = lab.runs[1]
    assert (single.num_gpus, single.batch_size, single.lr, single.num_epochs) == (1, 32, 0.3, 2)
    assert (lab.num_gpus, lab.batch_size) == (2, 64)
    row = lab.table()[0]
    assert (row.over, row.speedup, row.alone) == (2, 1, False)
    lab.run_one_device(1)
    assert "lacks no run" in lab.message and lab.status == "idle" and len(lab.runs) == 2


EDITED = "def train(num_gpus, batch_size, lr): return {'num_samples': 20, 'seconds': [%s]}"


@pytest.mark.needs("cores")
def test_code_that_was_changed_is_a_version_everywhere_and_never_a_repeat():
    nb = notebook(EDITED % 0.5)
    lab = TrainingLab(nb.train, num_gpus=2, batch_size=8).model
    lab.run()
    idle(lab)
    assert wire.runs(lab)[0]["name"] == "2 devices, batch 8"
    exec(EDITED % 0.25, vars(nb))
    lab.run_one_device(1)
    assert "has been changed" in lab.message and len(lab.runs) == 1
    for _ in range(2):
        lab.run()
        idle(lab)
    names = [run["name"].removeprefix("2 devices, batch 8, ") for run in wire.runs(lab)]
    assert names == ["version 1", "version 2", "version 2, repeat 2"]
    assert [row["cells"]["Code"] for row in wire.table(lab)["rows"]] == [
        "version 1",
        "version 2",
    ]


def test_runs_that_failed_are_no_repeats():
    about = {
        "train": "a",
        "version": "x",
        "num_gpus": 2,
        "batch_size": 8,
        "lr": 0.1,
        "num_epochs": None,
    }
    states = ["failed", "finished", "stopped", "failed", "finished", "running"]
    names = words.names([about | {"status": status} for status in states])
    repeats = [name.partition("repeat ")[2] for name in names]
    assert [repeats[at] for at in (1, 4, 5)] == ["", "2", "3"]


@pytest.mark.parametrize(
    "name, value",
    [
        ("batch_size", 0),
        ("batch_size", -8),
        ("batch_size", 1),
        ("lr", 0.0),
        ("lr", -1.0),
        ("lr", float("inf")),
        ("num_gpus", 0),
        ("num_gpus", 40),
        ("num_epochs", 0),
    ],
)
def test_a_setting_that_cannot_be_right_is_told_by_its_name_and_does_not_run(name, value):
    lab = LabModel({"Python": trains_a_little}, num_gpus=2, batch_size=64)
    lab.num_devices = 2
    assert wire.state(lab)["wrong"] == {}
    setattr(lab, name, value)
    assert list(wire.state(lab)["wrong"]) == [name]
    assert speedup_question.asked(lab) is None and lab.forecast() is None
    lab.run()
    assert (lab.status, lab.runs) == ("idle", []) and lab.message == lab.wrong[name]
