"""Where NumPy and Python's ``random`` draw numbers, with their global generators and with others.

NumPy's generators are compiled, and their methods cannot be replaced: in place of the classes stand
subclasses of them. What has a name of its own before PyTorch is imported is not seen, as after
``from random import randint``.
"""

import random
from functools import wraps

import numpy as np

NOISE = (
    "random", "rand", "randn", "random_sample", "uniform", "normal", "standard_normal", "binomial",
    "gauss", "normalvariate",
)  # fmt: skip
OTHERS = ("randint", "integers", "randrange", "choice", "choices", "sample", "permutation")


def watch_generators(names, made):
    """From now on each function of these names is ``made(real, state)``.

    ``state(*args)``: that of the generator with which a call with these arguments draws.
    """
    _replace(np.random, names, made, lambda *_: repr(np.random.get_state(legacy=False)))
    _replace(random, names, made, lambda *_: repr(random.getstate()))
    _replace(random.Random, names, made, _state_of_random)
    np.random.RandomState = _subclass(
        np.random.RandomState, names, made, lambda own, *_: repr(own.get_state(legacy=False))
    )
    generator = _subclass(
        np.random.Generator, names, made, lambda own, *_: repr(own.bit_generator.state)
    )
    default = np.random.default_rng

    @wraps(default)
    def default_rng(seed=None):
        found = default(seed)
        return found if found is seed else generator(found.bit_generator)

    np.random.Generator, np.random.default_rng = generator, default_rng


def _replace(owner, names, made, state):
    for name in names:
        if hasattr(owner, name):
            setattr(owner, name, made(getattr(owner, name), state))


def _state_of_random(own, *_):
    """None where the system draws, which has no state."""
    return None if isinstance(own, random.SystemRandom) else repr(own.getstate())


class _Kind(type):
    """The class of a subclass of which also the instances of its base are instances."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.__base__)


def _subclass(base, names, made, state):
    methods = {name: made(getattr(base, name), state) for name in names if hasattr(base, name)}
    return _Kind(base.__name__, (base,), methods | {"__module__": base.__module__})
