"""What is sent to a worker: the edited function, and clear words for what cannot be sent."""

import sys
import threading
import types
from pathlib import Path

import cloudpickle
import pytest
import trains
from notebook import notebook

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab.functions import JobError, check_call, framework_of, latest, make_job, modules_of
from d2lmgpu.lab.version import version
from d2lmgpu.launch import launch

CELL = """
rate = 2
def helper(x):
    return x * rate
def train(num_gpus, batch_size, lr, num_epochs=None):
    return [helper(x) for x in range(batch_size)]
"""


def test_the_function_is_the_one_that_has_its_name_now():
    nb = notebook(CELL)
    first = nb.train
    assert latest(first) is first
    exec("def train(num_gpus, batch_size, lr): return 'edited'", vars(nb))
    assert latest(first)(1, 1, 1) == "edited"
    nb.train = None
    assert latest(first) is first


@pytest.mark.parametrize(
    "edit, changes",
    [
        ("", False),
        ("unused = 3", False),
        ("rate = 3", True),
        ("def helper(x):\n    return x - rate", True),
        (
            "def train(num_gpus, batch_size, lr, num_epochs=2):\n    return [helper(x) for x in "
            "range(batch_size)]",
            True,
        ),
    ],
)
def test_the_version_changes_with_the_code_that_runs(edit, changes):
    before, after = notebook(CELL), notebook(CELL + edit)
    assert (version(before.train) != version(after.train)) is changes


USES = """
sizes = [8, {"wide": (16, 32)}]
class Net:
    @staticmethod
    def layers(x):
        return x + 1
    @property
    def depth(self):
        return 2
def train(num_gpus, batch_size, lr):
    return Net.layers(sizes), Net().depth
"""


@pytest.mark.parametrize(
    "before, after",
    [
        ("8, ", "9, "),
        ("32", "64"),
        ("x + 1", "x + 2"),
        ("return 2", "return 3"),
        ("(16, 32)", "(16, 16)"),
    ],
)
def test_the_version_changes_with_what_the_code_uses(before, after):
    assert version(notebook(USES).train) == version(notebook(USES).train)
    edited = notebook(USES.replace(before, after))
    assert version(notebook(USES).train) != version(edited.train)


def test_the_framework_is_that_of_the_notebook():
    d2l = types.ModuleType("d2lmgpu.mxnet")
    assert framework_of(notebook(CELL, d2l=d2l).train) == "mxnet"
    assert framework_of(notebook(CELL, torch=types.ModuleType("torch")).train) is None


ROUND_ABOUT = """
import functools, torch
@torch.no_grad()
def train(num_gpus, batch_size, lr): return "old"
def timed(fn):
    def wrapper(num_gpus, batch_size, lr): return fn(num_gpus, batch_size, lr)
    return wrapper
class Trainer:
    def fit(self, num_gpus, batch_size, lr): pass
    __call__ = fit
shapes = [train, functools.partial(train, lr=1), Trainer().fit, Trainer(), timed(train)]
"""


def test_the_framework_is_seen_through_decorators_partials_and_methods():
    d2l = types.ModuleType("d2lmgpu.torch")
    for train in notebook(ROUND_ABOUT, d2l=d2l).shapes:
        assert framework_of(train) == "torch"
    nb = notebook(ROUND_ABOUT)
    nb.part = type("Part", (), {"__module__": "d2lmgpu.torch.devices"})
    assert framework_of(nb.train) == "torch", "a name from one of the backend's files"


def test_the_newest_is_seen_through_decorators_and_partials():
    nb = notebook(ROUND_ABOUT)
    first, partial = nb.train, nb.shapes[1]
    assert (latest(first), latest(partial)) == (first, partial)
    exec("@torch.no_grad()\ndef train(num_gpus, batch_size, lr): return 'new'", vars(nb))
    assert latest(first)(1, 1, 1) == latest(partial)(1, 1, lr=1) == "new"
    assert latest(partial).keywords == {"lr": 1}


def test_a_worker_prepares_for_processes_where_the_notebook_has_launch():
    d2l = types.ModuleType("d2lmgpu.torch")
    assert modules_of(notebook(CELL, d2l=d2l, run=launch).train) == ("torch", "launch")
    assert modules_of(notebook(CELL, d2l=d2l).train) == ("torch",)
    chapters = Path(__file__).resolve().parents[2] / "chapters"
    assert ChapterTrain(chapters / "concise" / "pytorch.ipynb").modules == ("torch", "launch")
    assert ChapterTrain(chapters / "concise" / "mxnet.ipynb").modules == ("mxnet",)


def test_a_job_carries_the_settings_of_the_notebook(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    monkeypatch.setenv("OTHER", "secret")
    job = cloudpickle.loads(make_job(notebook(CELL).train, {"num_gpus": 1}))
    assert job["environ"]["D2LMGPU_PROFILE"] == "test" and "OTHER" not in job["environ"]
    assert job["path"] == sys.path
    fn, arguments = cloudpickle.loads(job["call"])
    assert (fn(1, 3, 0.1), arguments) == ([0, 2, 4], {"num_gpus": 1})


def test_what_cannot_be_sent_is_named():
    lock = threading.Lock()
    nb = notebook("def helper():\n    return lock\ndef train(): return helper()", lock=lock)
    with pytest.raises(JobError, match=r"'lock', which helper uses, is of type lock"):
        make_job(nb.train, {})
    nb = notebook(
        "def train(): return train and helper()\ndef helper(): return train, lock", lock=lock
    )
    with pytest.raises(JobError, match=r"'lock', which helper uses"):
        make_job(nb.train, {})
    with pytest.raises(JobError, match="The argument 'data' is of type lock"):
        make_job(trains.finishes, {"data": lock})


@pytest.mark.parametrize(
    "fn, words",
    [
        (3, "train is 3: give a function"),
        (lambda num_gpus, lr: None, "batch_size"),
        (lambda num_gpus, batch_size, lr, net: None, "'net'.*fixed="),
    ],
)
def test_another_signature_is_an_error_that_says_what_is_needed(fn, words):
    with pytest.raises(JobError, match=words):
        check_call(fn)
