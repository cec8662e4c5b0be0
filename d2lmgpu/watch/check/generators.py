"""Where NumPy and Python's ``random`` draw numbers, with their global generators and with others.

NumPy's generators are compiled, and their methods cannot be replaced: in place of the classes stand
subclasses of them. What has a name of its own before PyTorch is imported is not seen, as after
``from random import randint``.
"""

import abc
import hashlib
import pickle
import random
from functools import wraps
from types import ModuleType

import numpy as np

NOISE = (
    "random",
    "rand",
    "randn",
    "random_sample",
    "uniform",
    "normal",
    "standard_normal",
    "binomial",
    "gauss",
    "normalvariate",
)
NUMPY, PYTHON = "seed of NumPy", "seed of random"
OTHERS = ("randint", "integers", "randrange", "choice", "choices", "sample", "permutation")


def watch_generators(names, made) -> None:
    """From now on each function of these names is ``made(real, state)``.

    ``state(*args)``: a few letters for that of the generator with which a call with these arguments
    draws, None if it has none. ``state.seed``: as ``watch_seeds`` calls its seed, or "".
    """
    _replace(np.random, names, made, _State(lambda *_: np.random.get_state(legacy=False), NUMPY))
    _replace(random, names, made, _State(lambda *_: random.getstate(), PYTHON))
    _replace(random.Random, names, made, _State(_state_of_random))
    np.random.RandomState = _subclass(
        np.random.RandomState, names, made, _State(lambda own, *_: own.get_state(legacy=False))
    )
    generator = _subclass(
        np.random.Generator, names, made, _State(lambda own, *_: own.bit_generator.state)
    )
    default = np.random.default_rng

    @wraps(default)
    def default_rng(seed=None):
        made = default(seed)
        return made if made is seed else generator(made.bit_generator)

    np.random.Generator, np.random.default_rng = generator, default_rng


def watch_seeds(made) -> None:
    """From now on ``np.random.seed`` and ``random.seed`` are ``made(real, NUMPY or PYTHON)``."""
    for owner, kind in ((np.random, NUMPY), (random, PYTHON)):
        _replace(owner, ["seed"], made, kind)


class _State:
    def __init__(self, get, seed=""):
        self.get, self.seed = get, seed

    def __call__(self, *args):
        state = self.get(*args)
        data = None if state is None else pickle.dumps(state)
        return data and hashlib.blake2b(data, digest_size=8).hexdigest()


def _replace(owner, names, made, state):
    for name in names:
        if hasattr(owner, name):
            function = made(getattr(owner, name), state)
            if isinstance(owner, ModuleType):  # by which pickle finds it
                function.__module__, function.__qualname__ = owner.__name__, name
            setattr(owner, name, function)


def _state_of_random(own, *_):
    """None where the system draws, which has no state."""
    return None if isinstance(own, random.SystemRandom) else own.getstate()


class _Kind(abc.ABCMeta):  # of that kind, so that the reader's may be abstract classes as well
    """The class of a subclass of which also the instances of its base are instances."""

    def __instancecheck__(cls, instance):
        if "_in_place_of_base" in cls.__dict__:
            return isinstance(instance, cls.__base__)
        return super().__instancecheck__(instance)


def _subclass(base, names, made, state):
    methods = {name: made(getattr(base, name), state) for name in names if hasattr(base, name)}
    fields = {"__module__": "numpy.random", "_in_place_of_base": True}
    return _Kind(base.__name__, (base,), methods | fields)
