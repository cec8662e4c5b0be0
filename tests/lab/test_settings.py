"""A run as the query of a URL, and as a cell that trains the same again."""

import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notebook import notebook
from recording import idle
from shapes import START, TRAIN
from trains import trains_a_little

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import TrainingLab, numbers
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.settings import SettingsError, cell, query_of, settings_from

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
COUNT = st.integers(1, 10**9 - 1)
CAN_BE_SENT = st.characters(exclude_categories=["Cs"])


@given(st.fixed_dictionaries({
    "train": st.text(CAN_BE_SENT), "num_gpus": COUNT, "batch_size": COUNT,
    "lr": st.floats(0, 1e299, exclude_min=True), "scale_lr": st.booleans(),
    "num_epochs": st.none() | COUNT,
}))  # fmt: skip
def test_there_and_back(settings):
    assert settings_from(query_of(settings)) == settings
    assert settings_from("?" + query_of(settings)) == settings


def test_the_settings_of_a_lab_come_back(lab):
    lab.num_epochs = 3
    settings = numbers.settings(lab)
    assert settings_from(query_of(settings)) == settings


def test_what_is_not_named_is_left_as_it_is_but_for_epochs_and_scaling():
    assert settings_from("num_gpus=2&batch_size=512&lr=0.2") == {
        "num_gpus": 2, "batch_size": 512, "lr": 0.2, "scale_lr": False, "num_epochs": None,
    }  # fmt: skip
    assert settings_from("") == {"scale_lr": False, "num_epochs": None}


@pytest.mark.parametrize("query, named", [
    ("num_gpus=two", "num_gpus"), ("num_gpus=0", "num_gpus"), ("num_gpus=-1", "num_gpus"),
    ("num_gpus=1.5", "num_gpus"), ("num_gpus=", "num_gpus"), ("num_gpus", "num_gpus"),
    ("num_gpus=²", "num_gpus"), ("batch_size=1_000", "batch_size"),
    ("batch_size=" + 5000 * "9", "batch_size"), ("num_epochs=None", "num_epochs"),
    ("lr=fast", "lr"), ("lr=nan", "lr"), ("lr=inf", "lr"), ("lr=-0.1", "lr"), ("lr=0", "lr"),
    ("scale_lr=maybe", "scale_lr"), ("gpus=2", "gpus"), ("lr=0.1&lr=0.2", "lr"),
    ("&".join(f"x{i}=1" for i in range(50)), "query"), ("lr=%ff", "query"),
])  # fmt: skip
def test_junk_is_refused_in_words(query, named):
    with pytest.raises(SettingsError, match=named) as refused:
        settings_from(query)
    assert len(str(refused.value)) < 700


@given(st.text())
def test_any_query_is_settings_or_refused(query):
    try:
        settings_from(query)
    except SettingsError as error:
        assert str(error)


@pytest.mark.parametrize("shape", TRAIN)
def test_the_cell_trains_as_the_run_did(shape, monkeypatch):
    nb = notebook(START + TRAIN[shape])
    monkeypatch.setitem(sys.modules, "__main__", nb)
    lab = TrainingLab(nb.train, batch_size=8, num_gpus=1, lr=0.25).model
    code = cell(lab)
    called = []
    names = vars(nb) | {"train": lambda **given: called.append(given)}
    exec(code, names)
    assert called == [{"num_gpus": 1, "batch_size": 8, "lr": 0.25}]


def test_the_reader_s_own_name_and_further_arguments_are_in_the_cell():
    nb = notebook(
        "def fit(num_gpus, batch_size, lr, num_epochs=None, momentum=0, data=None): pass\n"
        "best = fit"
    )
    lab = LabModel({"x": nb.fit}, {"momentum": 0.9}, num_gpus=2, num_epochs=3)
    assert cell(lab).startswith("fit(") and "momentum=0.9" in cell(lab)
    assert "num_epochs=3" in cell(lab)
    lab.num_epochs = None
    assert "num_epochs" not in cell(lab)
    assert cell(LabModel({"x": nb.fit}, {"data": object()})) == "", "it has no literal"
    assert cell(LabModel({"x": functools.partial(nb.fit, momentum=0.5)})) == "", "it has no name"


def test_a_simulated_run_says_how_it_is_simulated(lab, monkeypatch):
    monkeypatch.delenv("D2LMGPU_DEVICES", raising=False)
    lab.num_devices = 2
    assert "os.environ" not in cell(lab)
    lab.num_gpus = 4
    environ = {}
    called = []
    code = cell(lab).replace("import os", "")
    exec(code, {
        "os": SimpleNamespace(environ=environ), "trains_a_little": lambda **g: called.append(g),
    })  # fmt: skip
    assert environ == {"D2LMGPU_DEVICES": "cpu:4"} and called[0]["num_gpus"] == 4
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:8")
    assert "os.environ" not in cell(lab), "the reader has chosen"


def test_the_cell_of_a_chapter_s_train_runs_it():
    train = ChapterTrain(CHAPTERS / "scratch" / "pytorch.ipynb")
    code = cell(LabModel({"LeNet": train}, num_gpus=2, batch_size=64, lr=0.5))
    calls = []

    class Called(ChapterTrain):
        def __call__(self, **given):
            calls.append((self.path, given))

    *imports, call = code.splitlines()
    exec(call, {"ChapterTrain": Called})
    assert calls == [(train.path, {"num_gpus": 2, "batch_size": 64, "lr": 0.5})]
    assert imports == ["from d2lmgpu.course.chapter_train import ChapterTrain"]


def test_the_cell_gives_the_numbers_of_the_run(lab):
    lab.run()
    idle(lab)
    run = eval(cell(lab), {"trains_a_little": trains_a_little})
    assert lab.runs[0].accuracies == tuple(run.accuracies)
