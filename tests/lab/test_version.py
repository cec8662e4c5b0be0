"""Different code is never shown as repeats of one run; the same code has the same version."""

import threading

import numpy as np
import pytest
from notebook import notebook
from recording import SECONDS

from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.version import version

NOTEBOOK = """
import enum, functools
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

@dataclass
class Config:
    accuracy: float = 0.2
    layers: list = field(default_factory=list)

class Kind(enum.Enum):
    SMALL = 1

class Slots:
    __slots__ = ("width",)
    def __init__(self, width):
        self.width = width

def scaled(factor):
    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return factor * fn(*args, **kwargs)
        return wrapper
    return decorator

config, options, slots = Config(0.3), SimpleNamespace(mode=None, name=b"plain"), Slots(7)
weights = np.array([1.0, 2.0])
counts = {"a": {1, 2}}

@functools.lru_cache
def cached(n):
    return n * 2

@scaled(4)
def train(num_gpus, batch_size, lr, momentum=None):
    def inner(x):
        return x + 1
    return inner(weights), config, options, slots, counts, Kind, cached(3), train

partial = functools.partial(train, momentum=5)
"""


@pytest.mark.parametrize(
    "before, after",
    [
        ("Config(0.3)", "Config(0.4)"),
        ("accuracy: float = 0.2", "accuracy: float = 0.25"),
        ("mode=None", "mode=0"),
        ("mode=None", "mode=False"),
        ('b"plain"', 'b"other"'),
        ("Slots(7)", "Slots(8)"),
        ("[1.0, 2.0]", "[1.0, 3.0]"),
        ("[1.0, 2.0]", "[1, 2]"),
        ("{1, 2}", "{1, 3}"),
        ("@scaled(4)", "@scaled(5)"),
        ("@scaled(4)", ""),
        ("return factor *", "return factor +"),
        ("n * 2", "n * 3"),
        ("x + 1", "x + 2"),
        ("SMALL = 1", "SMALL = 2"),
        ("momentum=None", "momentum=0"),
    ],
)
def test_two_that_differ_are_two(before, after):
    assert before in NOTEBOOK
    edited = notebook(NOTEBOOK.replace(before, after))
    assert version(notebook(NOTEBOOK).train) != version(edited.train)


def test_the_same_is_the_same_however_often_it_is_asked_for():
    first, again = notebook(NOTEBOOK), notebook("\n\n# moved\n" + NOTEBOOK)
    assert version(first.train) == version(first.train) == version(again.train)
    assert version(first.partial) == version(again.partial) != version(first.train)
    other = notebook(NOTEBOOK.replace("momentum=5", "momentum=6"))
    assert version(first.partial) != version(other.partial)


def test_an_array_that_was_changed_in_place_makes_another_version():
    nb = notebook("def train(num_gpus, batch_size, lr): return X.sum()", X=np.zeros((1000, 1000)))
    before = version(nb.train)
    nb.X[-1, -1] = 1
    assert version(nb.train) != before


def test_nobody_knows_whether_it_is_the_same_so_it_is_not():
    nb = notebook("def train(num_gpus, batch_size, lr): return lock", lock=threading.Lock())
    assert version(nb.train) != version(nb.train)


CLOSURE = """
import functools
from types import SimpleNamespace

def reaches(accuracy):
    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(num_gpus, batch_size, lr):
            return SimpleNamespace(num_samples=20, accuracies=[accuracy], seconds=[0.25])
        return wrapper
    return decorator

@reaches(0.2)
def train(num_gpus, batch_size, lr):
    pass
"""


def test_two_runs_of_different_code_are_two_rows():
    nb = notebook(CLOSURE)
    lab = LabModel({"Python": nb.train})
    for cell in ("", "@reaches(0.9)\ndef train(num_gpus, batch_size, lr):\n    pass", ""):
        exec(cell, vars(nb))
        lab.run()
        assert lab.runner.wait(SECONDS) and lab.message == "Finished."
    assert [(row.accuracy.median, row.repeats) for row in lab.table()] == [(0.2, 1), (0.9, 2)]
