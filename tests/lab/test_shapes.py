"""Whatever shape a ``train`` has: it trains, or it is refused in words."""

import pytest
from notebook import notebook
from recording import SECONDS
from shapes import FAIL, NO_NUMBERS, REFUSED, START, TRAIN

from d2lmgpu.lab import TrainingLab
from d2lmgpu.lab.functions import JobError, modules_of
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.version import version


def ran(code):
    """The lab of the ``train`` in ``code``, after a run."""
    lab = TrainingLab(notebook(START + code).train, batch_size=8).model
    lab.run()
    assert lab.runner.wait(SECONDS) and lab.status == "idle"
    return lab


@pytest.mark.parametrize("shape", TRAIN)
def test_it_trains_and_its_numbers_are_shown(shape):
    lab = ran(TRAIN[shape])
    (row,) = lab.table()
    assert (lab.message, row.trial.status) == ("Finished.", "finished"), lab.details
    assert (row.samples_per_second.median, row.accuracy.median) == (80, 0.5)


@pytest.mark.parametrize("shape", NO_NUMBERS)
def test_it_trains_and_the_lab_says_what_it_cannot_show(shape):
    code, words = NO_NUMBERS[shape]
    lab = ran(code)
    (row,) = lab.table()
    assert (row.trial.status, row.samples_per_second, row.accuracy) == ("finished", None, None)
    assert words in lab.message and row.trial.message == lab.message


@pytest.mark.parametrize("shape", FAIL)
def test_it_fails_in_words(shape):
    code, words = FAIL[shape]
    lab = ran(code)
    assert lab.runs[0].status == "failed" and words in lab.message


@pytest.mark.parametrize("shape", REFUSED)
def test_no_lab_is_made_of_it(shape):
    code, words = REFUSED[shape]
    with pytest.raises(JobError, match=words):
        TrainingLab(notebook(START + code).train)
    assert POOL.spare is None


def test_a_train_that_has_become_a_generator_is_refused_when_run_is_pressed():
    nb = notebook(START + "def train(num_gpus, batch_size, lr): return trained()")
    lab = TrainingLab(nb.train).model
    exec("def train(num_gpus, batch_size, lr): yield trained()", vars(nb))
    lab.run()
    assert (lab.status, lab.runs) == ("idle", []) and "generator" in lab.message


@pytest.mark.parametrize("shape", TRAIN)
def test_its_version_stays_and_its_notebook_is_known(shape):
    code = f"{START}from d2lmgpu import launch\n{TRAIN[shape]}"
    train = notebook(code).train
    assert version(train) == version(train) == version(notebook(code).train)
    assert modules_of(train) == ("launch",)
