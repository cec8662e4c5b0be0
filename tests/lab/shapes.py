"""Functions of odd shapes that a reader may give to the lab, as the text of cells."""

START = """
import asyncio, functools, os, sys, threading
from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from d2lmgpu.records.run import Run

NUMBERS = {"num_samples": 20, "accuracies": [0.5], "seconds": [0.25]}

def trained(num_gpus=1, batch_size=1, lr=1.0):
    return SimpleNamespace(**NUMBERS)

def plain(num_gpus, batch_size, lr):
    return trained()

def waits_inside(num_gpus, batch_size, lr):
    yield plain(num_gpus, batch_size, lr)
"""

# Each trains, and its numbers are those above.
TRAIN = {
    "a partial": "train = functools.partial(plain, lr=0.1)",
    "a partial of a partial": "train = functools.partial(functools.partial(plain), lr=0.1)",
    "a lambda": "train = lambda num_gpus, batch_size, lr: trained()",
    "keyword-only": "def train(*, num_gpus, batch_size, lr): return trained()",
    "**kwargs": "def train(**kwargs): return trained(**kwargs)",
    "defaults": "def train(num_gpus=1, batch_size=8, lr=0.1, momentum=0.9): return trained()",
    "a bound method": """
class Trainer:
    def __init__(self, numbers):
        self.numbers = numbers
    def fit(self, num_gpus, batch_size, lr):
        return SimpleNamespace(**self.numbers)
train = Trainer(NUMBERS).fit
""",
    "a class method": """
class Trainer:
    @classmethod
    def fit(cls, num_gpus, batch_size, lr):
        return trained()
train = Trainer.fit
""",
    "a static method": """
class Trainer:
    @staticmethod
    def fit(num_gpus, batch_size, lr):
        return trained()
train = Trainer.fit
""",
    "a callable object": """
class Train:
    version, modules, training = 3, "all", True
    def __call__(self, num_gpus, batch_size, lr):
        return trained()
train = Train()
""",
    "a class": """
class train:
    def __init__(self, num_gpus, batch_size, lr):
        vars(self).update(NUMBERS)
""",
    "decorated with wraps": """
def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)
    return wrapper
@timed
def train(num_gpus, batch_size, lr): return trained()
""",
    "decorated where it is given": """
def train(num_gpus, batch_size, lr): return trained()
plain_train, train = train, functools.wraps(train)(lambda *args, **kwargs: plain(*args, **kwargs))
""",
    "decorated without wraps": """
def timed(fn):
    def wrapper(num_gpus, batch_size, lr):
        return fn(num_gpus, batch_size, lr)
    return wrapper
train = timed(plain)
""",
    "a nested function": """
def make(numbers):
    def train(num_gpus, batch_size, lr):
        return SimpleNamespace(**numbers)
    return train
train = make(NUMBERS)
""",
    "a recursive function": """
def train(num_gpus, batch_size, lr):
    return train(num_gpus, batch_size, 0) if lr else trained()
""",
    "a global array": """
net = np.arange(10.0)
def train(num_gpus, batch_size, lr):
    assert net.sum() == 45
    return trained()
""",
    "an async function that is run": """
async def trains(num_gpus, batch_size, lr):
    await asyncio.sleep(0)
    return trained()
def train(num_gpus, batch_size, lr):
    return asyncio.run(trains(num_gpus, batch_size, lr))
""",
    "returns a dict": "def train(num_gpus, batch_size, lr): return NUMBERS",
    "returns all of a Run as a dict": """
def train(num_gpus, batch_size, lr):
    return vars(Run(num_gpus, batch_size, lr, 20, "one device", [0.5], [0.25]))
""",
    "returns a Run": """
def train(num_gpus, batch_size, lr):
    return Run(num_gpus, batch_size, lr, 20, "one device", [0.5], [0.25])
""",
    "returns a kind of Run": """
class MyRun(Run):
    loss = 0.1
def train(num_gpus, batch_size, lr):
    return MyRun(num_gpus, batch_size, lr, 20, "one device", [0.5], [0.25])
""",
    "returns a named tuple": """
Result = namedtuple("Result", NUMBERS)
def train(num_gpus, batch_size, lr): return Result(**NUMBERS)
""",
    "returns arrays": """
def train(num_gpus, batch_size, lr):
    return {"num_samples": np.int64(20), "accuracies": np.array([0.5]), "seconds": (0.25,)}
""",
    "prints a lot": """
def train(num_gpus, batch_size, lr):
    for i in range(100_000):
        print("step", i)
    return trained()
""",
    "starts threads": """
def train(num_gpus, batch_size, lr):
    threading.Thread(target=threading.Event().wait).start()
    return trained()
""",
    "forks": """
def train(num_gpus, batch_size, lr):
    if os.fork() == 0:
        threading.Event().wait()
    return trained()
""",
}

# Each trains, but what it returns has no numbers, or none that say what they are: (code, words).
NO_NUMBERS = {
    "returns None": ("def train(num_gpus, batch_size, lr): pass", "returned None"),
    "returns a float": ("def train(num_gpus, batch_size, lr): return 0.5", "of type float"),
    "returns a tuple": (
        "def train(num_gpus, batch_size, lr): return 20, [0.5], [0.25]",
        "of type tuple",
    ),
    "returns an array": (
        "def train(num_gpus, batch_size, lr): return np.ones(3)",
        "of type ndarray",
    ),
    "returns another dict": (
        "def train(num_gpus, batch_size, lr): return {'loss': 1.0}",
        "loss is not shown",
    ),
}

# Each fails in the run: (code, words of the message).
FAIL = {
    "raises": ("def train(num_gpus, batch_size, lr): 1 / 0", "ZeroDivisionError"),
    "SystemExit": ("def train(num_gpus, batch_size, lr): sys.exit()", "SystemExit"),
    "asks for input": ("def train(num_gpus, batch_size, lr): input()", "EOFError"),
    "returns a generator": (
        "train = lambda num_gpus, batch_size, lr: waits_inside(num_gpus, batch_size, lr)",
        "generator and has not trained",
    ),
    "returns a map": (
        "def train(num_gpus, batch_size, lr): return map(print, [1])",
        "map and has not trained",
    ),
    "a decorated async function": (
        """
async def trains(num_gpus, batch_size, lr): return trained()
@functools.wraps(trains)
def train(*args, **kwargs): return trains(*args, **kwargs)
""",
        "coroutine and has not trained",
    ),
}

# No lab can be made of these: (code, words).
REFUSED = {
    "a generator": ("train = waits_inside", "generator"),
    "a partial of a generator": ("train = functools.partial(waits_inside, lr=1)", "generator"),
    "an async function": (
        "async def train(num_gpus, batch_size, lr): return trained()",
        "async",
    ),
    "an async generator": (
        "async def train(num_gpus, batch_size, lr): yield trained()",
        "async",
    ),
    "an object with a generator": (
        """
class Train:
    def __call__(self, num_gpus, batch_size, lr):
        yield
train = Train()
""",
        "generator",
    ),
    "positional only": ("def train(num_gpus, batch_size, lr, /): pass", "cannot be called"),
    "a built-in without a signature": ("train = max", "does not say what it takes"),
    "no function": ("train = 3", "train is 3"),
}
