"""NumPy's and random's generators while a script is checked: as they are without us."""

import subprocess
import sys

PROGRAM = """
import abc, copy, functools, pickle, random
import numpy as np

def drawn():
    random.seed(3)
    np.random.seed(3)
    rng, old, own = np.random.default_rng(3), np.random.RandomState(3), random.Random(3)
    return [
        random.uniform(0, 1), random.choices(range(9), k=4), np.random.normal(size=3).tolist(),
        rng.normal(size=2).tolist(), rng.integers(9, size=4).tolist(), old.rand(2).tolist(),
        own.gauss(0, 1), copy.deepcopy(rng).random(), pickle.loads(pickle.dumps(rng)).random(),
    ]

before = drawn()
from d2lmgpu.watch.check.generators import NOISE, OTHERS, watch_generators, watch_seeds

states = []

def made(real, state):
    @functools.wraps(real)
    def function(*args, **kwargs):
        value = real(*args, **kwargs)
        states.append(state(*args))
        return value

    return function

watch_generators(NOISE + OTHERS, made)
watch_seeds(lambda real, kind: functools.wraps(real)(lambda *args: real(*args)))
assert drawn() == before and states

for one in (functools.partial(random.uniform, 0, 1), np.random.normal, np.random.Generator,
            random.seed):
    pickle.loads(pickle.dumps(one))
rng = np.random.default_rng(0)

class Own(np.random.Generator):
    pass

class Abstract(np.random.Generator, abc.ABC):
    pass

base = np.random.Generator.__base__
assert isinstance(rng, np.random.Generator) and isinstance(base(np.random.PCG64()), type(rng))
assert not isinstance(rng, Own) and isinstance(Own(np.random.PCG64()), np.random.Generator)

def state_after(draw):
    draw()
    return states[-1]

rng, other = np.random.default_rng(5), np.random.default_rng(6)
assert state_after(rng.random) != state_after(other.random)
assert state_after(np.random.default_rng(5).random) == state_after(np.random.default_rng(5).random)
assert state_after(lambda: random.SystemRandom().uniform(0, 1)) is None  # the system has none
"""


def test_generators_draw_pickle_and_are_extended_as_without_us():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


DRAWS = """
import random, sys
from fractions import Fraction
from types import SimpleNamespace
import numpy as np
import torch
from d2lmgpu.watch.check.draws import Draws

folder, kept = sys.argv[1], {}
watch = SimpleNamespace(
    torch=torch, lines=SimpleNamespace(where=lambda frames: f"script.py:{frames[0][1]}"),
    keep=kept.__setitem__, steps=SimpleNamespace(before=[]),
)

def script():
    return [
        random.randint(0, 2**128), random.choice([Fraction(1, 3), Fraction(1, 2)]),
        random.choice(["rotate", "shear"]), random.choice([[1.0, 2.0], [3.0, 4.0]]),
        random.choice([0, 0.5]), [random.gauss(0, 1) for _ in range(3)],
        np.random.randn(3).tolist(), torch.randn(2).tolist(),
    ]

draws = Draws(watch, None)
random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
drawn = script()
draws.report()
for rank in range(2):
    with open(f"{folder}/kept-draws-{rank}", "wb") as file:
        file.write(kept["draws"])
one = Draws(watch, {"draws": "joined", "folder": folder, "ranks": 2})
random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
again = script()
assert again[4:] == drawn[4:], (again, drawn)  # what all ranks drew alike
"""


def test_draws_of_other_things_than_rows_do_no_harm(tmp_path):
    subprocess.run([sys.executable, "-c", DRAWS, str(tmp_path)], check=True)
