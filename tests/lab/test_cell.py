"""A run as a cell that trains the same again."""

import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from notebook import notebook
from recording import idle
from shapes import START, TRAIN
from trains import trains_a_little

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import TrainingLab
from d2lmgpu.lab.cell import cell
from d2lmgpu.lab.model import LabModel

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


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
    exec(
        code,
        {
            "os": SimpleNamespace(environ=environ),
            "trains_a_little": lambda **g: called.append(g),
        },
    )
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


@pytest.mark.needs("cores")
def test_the_cell_gives_the_numbers_of_the_run(lab):
    lab.run()
    idle(lab)
    run = eval(cell(lab), {"trains_a_little": trains_a_little})
    assert lab.runs[0].accuracies == tuple(run.accuracies)
