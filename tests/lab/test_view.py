"""The lab's two lives: widgets in a notebook, plain HTML in the book."""

import pytest
import trains
from recording import SECONDS

from d2lmgpu.lab import TrainingLab, runner
from d2lmgpu.lab.functions import JobError


def test_in_a_notebook_it_is_widgets_and_has_a_spare():
    lab = TrainingLab(trains.finishes, batch_size=32)
    assert runner._spare is None, "a lab that is not shown costs nothing"
    bundle = lab._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert runner._spare is not None
    assert lab._repr_mimebundle_() == bundle, "shown twice, it is the same lab"
    assert lab.view.batch_size.value == 32


def test_in_the_book_it_is_html_alone_and_starts_nothing(monkeypatch):
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    lab = TrainingLab(trains.finishes, records="no such record")
    (mime,) = lab._repr_mimebundle_()
    assert mime == "text/html"
    assert lab.view is None and runner._spare is None


def test_controls_and_model_follow_each_other():
    lab = TrainingLab(trains.finishes)
    lab._repr_mimebundle_()
    view, model = lab.view, lab.model
    assert view.num_epochs not in view.controls and view.train not in view.controls
    view.scale_lr.value, view.batch_size.value = True, 512
    assert (model.batch_size, model.lr, view.lr.value) == (512, 0.2, 0.2)
    view.num_epochs.value = 3
    assert model.num_epochs == 3
    view.num_epochs.value = 0
    assert model.num_epochs is None
    view.num_gpus.value = 17
    view.run.click()
    assert "1 to 16" in view.message.value and "1 to 16" in view.hint.value
    view.reset.click()
    assert (view.num_gpus.value, view.batch_size.value, view.lr.value) == (1, 256, 0.1)


def test_what_cannot_be_drawn_is_said_and_the_buttons_go_on(monkeypatch):
    lab = TrainingLab(trains.finishes)
    lab._repr_mimebundle_()
    monkeypatch.setattr("d2lmgpu.lab.display.table", lambda *given: 1 / 0)
    lab.view.run.click()
    assert lab.model.runner.wait(SECONDS)
    assert lab.model.message == "Finished." and not lab.view.run.disabled
    assert "cannot show everything: ZeroDivisionError" in lab.view.troubles.value
    monkeypatch.undo()
    lab.view.run.click()
    assert lab.model.runner.wait(SECONDS)
    assert lab.view.troubles.value == "" and lab.view.table.value


def test_a_baseline_that_cannot_be_one_is_said():
    lab = TrainingLab(trains.returns_a_run)
    lab._repr_mimebundle_()
    lab.view.run.click()
    assert lab.model.runner.wait(SECONDS)
    assert "1.00" in lab.view.table.value and "Row" not in lab.view.table.value.split("<thead>")[0]
    lab.view.baseline.value = 99
    assert "Row 99 is no measured run" in lab.view.table.value
    assert "1.00" not in lab.view.table.value


def test_another_signature_is_refused_at_once():
    with pytest.raises(JobError, match="cannot be called with num_gpus, batch_size, lr"):
        TrainingLab(lambda batch_size: None)


@pytest.mark.parametrize("given", [
    {"train": None}, {"train": [trains.finishes]}, {"records": 3}, {"records": None},
    {"fixed": "accuracy"}, {"time_limit": None}, {"num_gpus": [2]}, {"train": {}},
])  # fmt: skip
def test_arguments_of_a_wrong_type_are_refused_at_once(given):
    with pytest.raises(JobError):
        TrainingLab(**{"train": trains.finishes} | given)
