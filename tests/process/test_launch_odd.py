"""``launch`` on functions of twenty shapes, as their writers define them in a notebook's cells.

Each gives the right answer, or an error of ours that says what it was.
"""

import math

import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch

# name: (the cell, what rank 0 returns)
ANSWERS = {
    "a lambda": ("f = lambda: 7", 7),
    "a partial": ("from functools import partial\nf = partial(pow, 2, exp=5)", 32),
    "a bound method": (
        "class A:\n    x = 3\n    def method(self): return self.x\nf = A().method",
        3,
    ),
    "a class method": (
        "class A:\n    x = 4\n    @classmethod\n    def make(cls): return cls.x\nf = A.make",
        4,
    ),
    "an object that can be called": (
        "class A:\n    def __init__(self): self.x = 5\n"
        "    def __call__(self): return self.x\nf = A()",
        5,
    ),
    "a decorated function": (
        "import functools\ndef twice(g):\n    @functools.wraps(g)\n"
        "    def h(*a): return 2 * g(*a)\n    return h\n@twice\ndef f(): return 4",
        8,
    ),
    "a decorator that hides its function": (
        "def twice(g): return lambda: 2 * g()\n@twice\ndef f(): return 3",
        6,
    ),
    "torch's own decorator": (
        "import torch\n@torch.no_grad()\ndef f(): return torch.is_grad_enabled()",
        False,
    ),
    "a closure": ("def make(n):\n    def f(): return n + 1\n    return f\nf = make(8)", 9),
    "a recursive function": ("def f(n=5): return n * f(n - 1) if n else 1", 120),
    "a built-in": ("f = dict", {}),
    "a global array": ("import numpy as np\nx = np.arange(4)\ndef f(): return int(x.sum())", 6),
    "a global net": (
        "import torch\nnet = torch.nn.Linear(2, 3)\n"
        "def f(): return sum(p.numel() for p in net.parameters())",
        9,
    ),
    "defaults and keywords only": ("def f(*, x=1.5): return x", 1.5),
    "an infinity": ("def f(): return float('inf')", math.inf),
    "nothing": ("def f(): pass", None),
    "a thread of its own": (
        "import threading\ndef f():\n    out = []\n"
        "    t = threading.Thread(target=out.append, args=(1,))\n"
        "    t.start(); t.join()\n    return out",
        [1],
    ),
    "a closed standard output": ("import sys\ndef f():\n    sys.stdout.close()\n    return 2", 2),
    "another working folder": (
        "import os\ndef f():\n    os.chdir('/')\n    return os.getcwd()",
        "/",
    ),
    "an instance of a class in the notebook": (
        "class A:\n    def __eq__(self, other): return other == 6\ndef f(): return A()",
        6,
    ),
}

# name: (the cell, words of the error)
REFUSED = {
    "a generator": ("def f(): yield 1", ["return"]),
    "an async function": ("async def f(): return 1", ["coroutine"]),
    "a lock": ("import threading\ndef f(): return threading.Lock()", ["return", "lock"]),
    "a DDP net": (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(): return DDP(torch.nn.Linear(1, 1))",
        ["return", "DistributedDataParallel"],
    ),
    "sys.exit": ("import sys\ndef f(): sys.exit('stop')", ["SystemExit", "stop"]),
    "an error with a lock in it": (
        "import threading\nclass Odd(Exception): pass\ndef f(): raise Odd(threading.Lock())",
        ["Odd"],
    ),
    "a missing argument": ("def f(x): return x", ["TypeError", "x"]),
}


def defined(cell):
    namespace = {"__name__": "__main__"}
    exec(cell, namespace)
    return namespace["f"]


KINDS = {
    "a bound method",
    "torch's own decorator",
    "a closure",
    "a global net",
    "a thread of its own",
    "a closed standard output",
    "an instance of a class in the notebook",
    "an async function",
    "an error with a lock in it",
}


@pytest.mark.parametrize("name", sample(KINDS, ANSWERS))
def test_right_answer(name, traces):
    cell, answer = ANSWERS[name]
    assert launch(defined(cell), num_processes=1) == [answer]
    traces.assert_none()


@pytest.mark.parametrize("name", sample(KINDS, REFUSED))
def test_refused_in_words(name, traces):
    cell, words = REFUSED[name]
    with pytest.raises((LaunchError, TypeError)) as caught:
        launch(defined(cell), num_processes=1)
    assert all(word in str(caught.value) for word in words), caught.value
    traces.assert_none()


@pytest.mark.parametrize("value", [None, 5, "train", [len]])
def test_what_cannot_be_called_is_refused(value):
    with pytest.raises(TypeError, match="function"):
        launch(value, num_processes=1)


@pytest.mark.parametrize("num_processes", [0, -1, 1.5, True, "2", None])
def test_a_number_of_processes_that_is_none_is_refused(num_processes):
    with pytest.raises(ValueError, match="num_processes"):
        launch(dict, num_processes=num_processes)
