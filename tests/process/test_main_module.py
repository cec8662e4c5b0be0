"""What a notebook's cells define works in workers as in the kernel, by name and by value."""

import sys

import pytest
from jupyter_kernel import Kernel
from soaking import sample

DEFINE = """
from d2lmgpu.launch import launch
import dataclasses, enum, functools, inspect, multiprocessing, pickle, sys, typing
from concurrent.futures import ProcessPoolExecutor
import torch
from torch import distributed as dist, nn

scale = 3

@dataclasses.dataclass
class Stats:
    loss: float
    kind = "plain"
    def scaled(self):
        return self.loss * scale

class Detailed(Stats):
    kind = "plain"

class Unsaved:
    def __getstate__(self):
        raise OSError("its file has gone")

@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    x: torch.Tensor
    names: "typing.List[str]" = ()

class Color(enum.Enum):
    RED = 1

class Planet(enum.Enum):
    EARTH = 6, 3
    MARS = 4, 2
    HOME = EARTH
    def __init__(self, mass, radius):
        self.mass, self.radius, self.scaled = mass, radius, lambda: self.mass * scale
    @property
    def gravity(self):
        return self.mass / self.radius**2

class Level(int, enum.Enum):
    def __new__(cls, number, text):
        self = int.__new__(cls, number)
        self._value_ = text
        return self
    LOW = 1, "low"
    HIGH = 9, "high"

class Numbered(enum.Enum):
    def __new__(cls, *_):
        self = object.__new__(cls)
        self._value_ = len(cls.__members__) + 1
        return self

class Step(Numbered):
    FORWARD = "f", "x"
    BACKWARD = "b"
    def __init__(self, letter, *_):
        self.letter = letter

class Two:
    def __init__(self, a, b):
        self.a, self.b = a, b

class Pair(Two, enum.Enum):
    FIRST = 1, 2

class Row(tuple, enum.Enum):
    SHORT = 1,
    LONG = 2, 3

class May(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3

Planet.EARTH.next, Planet.MARS.next = Planet.MARS, Planet.EARTH

class Point(typing.NamedTuple):
    x: int

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
    def forward(self, x: torch.Tensor):
        return self.layer(x)

class Outer:
    class Inner:
        pass

class Registered:
    kinds = []
    def __init_subclass__(cls, /, name, **more):
        Registered.kinds.append(name)

class First(Registered, name="first"):
    pass

class Odd(Exception):
    pass

@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@functools.cache
def cached():
    return []

class Data:
    @functools.cached_property
    def whole(self):
        return [scale]
    @functools.lru_cache(maxsize=None)
    def part(self, i):
        return i * scale

@functools.singledispatch
def show(x):
    return "object"

@show.register
def _(x: int):
    return "int in " + show([])

@show.register
def _(x: Stats):
    return "stats"

Params, Id = typing.ParamSpec("Params"), typing.NewType("Id", int)

def twice(fn: typing.Callable[Params, int]) -> typing.Callable[Params, int]:
    @functools.wraps(fn)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs):
        return 2 * fn(*args, **kwargs)
    return wrapper

@twice
def square(x):
    return x * x

@torch.jit.script
def compiled(x: torch.Tensor):
    return x + 1

def total(xs: typing.List[int]) -> int:
    s = 0
    for x in xs:
        s += x
    return s

def stats(x):
    return Stats(x * scale)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with Kernel(tmp_path_factory.mktemp("notebook")) as kernel:
        assert kernel.run(DEFINE) == ""
        yield kernel


# what a worker does -> the lines of its function, and what is asked in the kernel of their result
SAME = {
    "all_gather_object": (
        "out = [None] * 2\ndist.all_gather_object(out, Stats(dist.get_rank()))\nreturn out",
        "out == [Stats(0), Stats(1)] and type(out[1]) is Stats",
    ),
    "all_gather_object of another": (
        "out = [None] * 2\n"
        "dist.all_gather_object(out, (Color.RED, Point(1), Outer.Inner(), stats))\n"
        "return out[1]",
        "out[:2] == (Color.RED, Point(1)) and type(out[2]) is Outer.Inner and out[3] is stats",
    ),
    "broadcast_object_list": (
        "out = [Batch(torch.ones(2), ['a'])] if dist.get_rank() == 0 else [None]\n"
        "dist.broadcast_object_list(out)\n"
        "return out[0]",
        "type(out) is Batch and out.names == ['a'] and not hasattr(out, '__dict__')",
    ),
    "scatter_object_list": (
        "out = [None]\n"
        "dist.scatter_object_list(out, [Color.RED, Stats] if dist.get_rank() == 0 else None)\n"
        "return out[0]",
        "out is Color.RED",
    ),
    "a net in a file": (
        "file = f'net-{dist.get_rank()}.pt'\n"
        "torch.save(Net(), file)\n"
        "return type(torch.load(file, weights_only=False)) is Net",
        "out and type(torch.load('net-1.pt', weights_only=False)) is Net",
    ),
    "pickle": (
        "same = [Stats, Color.RED, Color, stats, Data, Outer.Inner, Odd, fibonacci, show, Id]\n"
        "return [pickle.loads(pickle.dumps(one)) is one for one in same]",
        "all(out)",
    ),
    "import __main__": (
        "import __main__\n"
        "from __main__ import stats as again\n"
        "return __main__.Stats is Stats, __main__.scale, getattr(__main__, 'Batch') is Batch, "
        "again is stats, sys.modules['__main__'].Point is Point, globals()['Net'] is Net",
        "out == (True, 3, True, True, True, True)",
    ),
    "caches": (
        "cached().append(1)\n"
        "kept = fibonacci.cache_parameters()\n"
        "return fibonacci(30), kept['maxsize'], cached(), Data().whole, Data().part(2)",
        "out == (832040, 128, [1], [3], 6) and cached() == []",
    ),
    "singledispatch": (
        "return show(1), show(Stats(1)), show('x')",
        "out == ('int in object', 'stats', 'object')",
    ),
    "decorators with types": (
        "return square(3), Id(4), square.__wrapped__(3)",
        "out == (18, 4, 9)",
    ),
    "getsource": (
        "return [inspect.getsource(one) for one in (stats, Stats.scaled, square)]",
        "out == [inspect.getsource(one) for one in (stats, Stats.scaled, square)]",
    ),
    "torch.jit.script": (
        "return (compiled(torch.ones(1)).item(), torch.jit.script(total)([1, 2]), "
        "torch.jit.script(Net())(torch.ones(1, 2)).shape)",
        "out == (2, 3, (1, 1))",
    ),
    "members of enumerations": (
        "earth = Planet.EARTH\n"
        "return (earth.gravity, earth.scaled(), earth.next.next is earth, Planet((4, 2)).radius, "
        "Planet['HOME'] is earth, Level('low') + 1, Level.HIGH > 8, Step.BACKWARD.value, "
        "Step(1).letter, Pair.FIRST.b, Row.SHORT + Row.LONG, May['BOTH'], list(May.__members__), "
        "[one in vars(Planet) for one in ('__new_member__', '__init__')])",
        "out == (6 / 9, 18, True, 2, True, 2, True, 2, 'f', 2, (1, 2, 3), May.BOTH, "
        "['READ', 'WRITE', 'BOTH'], [False, True])",
    ),
    "members of enumerations for others": (
        "out = [None] * 2\n"
        "mine = Planet.MARS, Level.LOW, Step.FORWARD, Row.LONG, May.BOTH\n"
        "dist.all_gather_object(out, mine)\n"
        "return out[1], all(one is other for one, other in zip(out[1], mine))",
        "out[1] and all(one is other for one, other in "
        "zip(out[0], (Planet.MARS, Level.LOW, Step.FORWARD, Row.LONG, May.BOTH)))",
    ),
    "dataclasses": (
        "@dataclasses.dataclass\n"
        "class More(Stats):\n"
        "    name: str = ''\n"
        "return (More(1.0).scaled(), dataclasses.fields(Stats)[0].default is dataclasses.MISSING, "
        "typing.get_type_hints(Batch)['names'])",
        "out == (3.0, True, typing.List[str])",
    ),
    "a class and its base": (
        "Stats.kind = 'changed'\n"
        "return Detailed.kind, 'kind' in vars(Detailed), Detailed(1).scaled()",
        "out == ('plain', True, 3) and Stats.kind == 'plain'",
    ),
    "a class of which an object is returned": (
        "Stats.kind = 'changed'\nreturn Stats(1)",
        "type(out) is Stats and Stats.kind == 'plain' and out.scaled() == 3",
    ),
    "a registry": (
        "return Registered.kinds, First.__mro__[1] is Registered",
        "out == (['first'], True)",
    ),
    "an own global": (
        "global scale\nscale = 4\nimport __main__\nreturn stats(1), __main__.scale",
        "out == (Stats(4), 4) and scale == 3",
    ),
}


@pytest.fixture(scope="module")
def results(kernel):
    """In the kernel ``results`` is what one launch returned for all of SAME."""
    for number, (lines, _) in enumerate(SAME.values()):
        kernel.run(
            f"def do_{number}():\n" + "".join(f"    {line}\n" for line in lines.splitlines())
        )
    kernel.run(f"every = [{', '.join(f'do_{number}' for number in range(len(SAME)))}]")
    kernel.run("""
import traceback
def all_of_them():
    told = []
    for one in every:
        try:
            told.append(one())
        except Exception:
            told.append(traceback.format_exc())
    return told
results = launch(all_of_them, num_processes=2)[0]
""")


@pytest.mark.parametrize("what", SAME)
def test_as_in_the_kernel(kernel, results, what):
    kernel.run(f"out = results[{[*SAME].index(what)}]")
    assert kernel.run(f"({SAME[what][1]}) or print(out)") == "True"


@pytest.mark.parametrize("how", sample(2, ["fork", "spawn", "forkserver"]))
def test_pools_and_loaders_of_a_worker(kernel, how):
    kernel.run(LOADER)
    kernel.run(f"""
def worker():
    way = multiprocessing.get_context({how!r})
    with way.Pool(1) as pool:
        first = pool.map(stats, [1, 2]), pool.map(fibonacci, [9]), pool.map(square, [2])
    with ProcessPoolExecutor(1, mp_context=way) as pool:
        last = pool.submit(stats, 3).result()
    return *first, last, load(int, {how!r}, as_batch)
*out, batches = launch(worker, num_processes=1)[0]
""")
    assert kernel.run("out") == "[[Stats(loss=3), Stats(loss=6)], [34], [8], Stats(loss=9)]"
    ask = "all(type(one) is Batch for one in batches), [one.x.tolist() for one in batches]"
    assert kernel.run(ask) == "(True, [[0, 1], [2, 3]])"


LOADER = """
class Samples(torch.utils.data.Dataset):
    def __init__(self, get):
        self.get = get
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return self.get(i)

def as_batch(samples):
    return Batch(torch.tensor(samples), ["a"])

def raise_odd(i):
    raise Odd(f"sample {i} is odd")

def raise_own(i):
    class Own(Exception):
        pass
    raise Own(f"sample {i} is mine")

def load(get, how="fork", collate=list):
    loader = torch.utils.data.DataLoader(
        Samples(get), 2, num_workers=1, collate_fn=collate, multiprocessing_context=how)
    return list(loader)
"""


# what a dataset does -> words of the error
FAILING = {
    "raise_odd": ["Odd: ", "sample 0 is odd"],
    "raise_own": ["Own", "sample 0 is mine", "cannot be found by its name"],
    "lambda i: lambda: i": ["a list, cannot be sent", "lambda"],
    "lambda i: (j for j in [i])": ["a list, cannot be sent", "generator"],
    "lambda i: Unsaved()": ["a list, cannot be sent", "its file has gone"],
    "lambda i: __import__('threading').Lock()": ["a list, cannot be sent", "lock"],
    "lambda i: __import__('os')._exit(3)": ["RuntimeError: DataLoader worker", "unexpectedly"],
    "lambda i: __import__('os').abort()": ["RuntimeError: DataLoader worker"],
}


@pytest.fixture(scope="module")
def failed(kernel):
    """In the kernel ``failed`` has the errors of one launch for all of FAILING."""
    kernel.run(LOADER)
    kernel.run(f"""
getters = [{", ".join(FAILING)}]
def each():
    told = []
    for get in getters:
        try:
            load(get)
        except Exception as error:
            told.append(f"{{type(error).__name__}}: {{error}}")
    return told
failed = launch(each, num_processes=1)[0]
""")


@pytest.mark.parametrize("get", FAILING)
def test_a_loader_whose_worker_fails_is_an_error_with_its_cause(kernel, failed, get):
    error = kernel.run(f"print(failed[{[*FAILING].index(get)}])")
    assert all(word in error for word in FAILING[get]), error


@pytest.mark.parametrize(
    "cell, word",
    [
        ("@locked\ndef f(): pass", "'lock', which the decorator locked of f uses,"),
        ("@hidden\ndef f(): pass", "'lock', which inner in hidden uses,"),
        ("@Retry\ndef f(): pass", "'f.lock'"),
        ("log = Log()\ndef f(): log.file", "'log.file', which f uses,"),
        ("config = {'log': Log()}\ndef f(): config", "\"config['log'].file\", which f uses,"),
        ("class Shared: lock = Lock()\ndef f(): Shared()", "'Shared.lock', which f uses,"),
        ("@functools.cache\ndef g(): lock\ndef f(): g()", "'lock', which g uses,"),
        ("@torch.compile\ndef g(x): pass\ndef f(): g(1)", "'g', which f uses,"),
        ("numbers = (i for i in [1])\ndef f(): next(numbers)", "'numbers', which f uses,"),
        ("def g(*_): pass\nf = functools.partial(g, 1, lock)", "'f.args[1]'"),
        ("g = functools.partial(print, lock)\ndef f(): g()", "'g.args[0]', which f uses,"),
        (
            "g = functools.partial(print, end=[lock])\ndef f(): g()",
            "\"g.keywords['end'][0]\", which f uses,",
        ),
    ],
)
def test_what_cannot_be_sent_is_named_by_the_readers_word(kernel, cell, word):
    kernel.run("""
from threading import Lock
lock = Lock()
def locked(fn):
    @functools.wraps(fn)
    def wrapper():
        with lock: return fn()
    return wrapper
def hidden(fn):
    lock = Lock()
    def inner():
        with lock: return fn()
    return inner
class Retry:
    def __init__(self, fn): self.fn, self.lock = fn, Lock()
    def __call__(self): return self.fn()
class Log:
    def __init__(self): self.file = open("log", "w")
""")
    error = kernel.error(f"{cell}\nlaunch(f, num_processes=1)")
    assert error.startswith(f"TypeError: {word} is of type "), error


SSH = f"""#!{sys.executable}
import os, sys
environ = dict(os.environ, SSH_CONNECTION="127.0.0.1 5 127.0.0.1 22")
os.execve("/bin/sh", ["sh", "-c", sys.argv[-1]], environ)
"""
ELSEWHERE = """
import os
def tried():
    import __main__
    assert __main__.Stats is Stats and fibonacci(20) == 6765 and show(1) == "int in object"
    assert type(pickle.loads(pickle.dumps(Stats(1)))) is Stats
    assert "scale" in inspect.getsource(stats)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(stats, [1]) == [Stats(3)]
    return Stats(2)
"""
# where else a function runs -> the cell, and what it shows
PLACES = {
    "a host": (
        "os.environ['PATH'] = os.getcwd() + os.pathsep + os.environ['PATH']\n"
        "launch(tried, hosts=['a'], num_processes=1)",
        "[Stats(loss=2)]",
    ),
    "the lab": (
        "from types import SimpleNamespace\n"
        "from d2lmgpu.lab.pool import POOL\n"
        "from d2lmgpu.lab.runner import Runner\n"
        "def train(num_gpus, batch_size, lr):\n"
        "    assert launch(tried, num_processes=1) == [tried()]\n"
        "    return SimpleNamespace(num_samples=1, accuracies=[1.0], seconds=[1])\n"
        "ends = []\n"
        "runner = Runner(on_end=ends.append)\n"
        "runner.start(train, (), num_gpus=1, batch_size=8, lr=0.1)\n"
        "runner.wait(80), POOL.end_spare()\n"
        "ends[0].status, ends[0].message",
        "('finished', 'Finished.')",
    ),
    "an exercise": (
        "from d2lmgpu.course.exercises.checking import check\n"
        "def combine(means, sizes):\n"
        "    assert tried() == Stats(2)\n"
        "    return sum(m * s for m, s in zip(means, sizes) if s > 0) / sum(sizes)\n"
        "bool(check('combine', combine, seeds=[0], seconds=80)) or _",
        "True",
    ),
    "explain": (
        "from d2lmgpu.watch.explain import explain\n"
        "def train():\n"
        "    assert tried() == Stats(2)\n"
        "    net = Net()\n"
        "    optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "    for _ in range(40):\n"
        "        optimizer.zero_grad()\n"
        "        net(torch.ones(8, 2)).sum().backward()\n"
        "        for parameter in net.parameters():\n"
        "            dist.all_reduce(parameter.grad)\n"
        "        optimizer.step()\n"
        "explain(train, num_gpus=2) is not None",
        "True",
    ),
}


@pytest.mark.parametrize("place", sample({*PLACES} - {"explain"}, PLACES))
def test_wherever_a_function_runs(kernel, place):
    ssh = kernel.folder / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    kernel.run(ELSEWHERE)
    cell, shown = PLACES[place]
    assert kernel.run(cell) == shown


def test_only_what_is_used_travels_and_only_once(kernel):
    kernel.run("from d2lmgpu.process.sending import pickled\nlarge = torch.zeros(2_000_000)")
    size = "len(pickled(f, {})) // 1_000_000"
    for cell in ("def f(): return stats(1)", "def f(large): import __main__", "f = Net()"):
        assert kernel.run(f"{cell}\n{size}") == "0"
    several = "def g(): return large\nclass C:\n    x = large\ndef f(): return g(), large, C.x"
    assert kernel.run(f"{several}\n{size}") == "8"


@pytest.mark.parametrize("line", ["!echo hello", "%timeit 1", "x = !ls"])
def test_a_line_of_the_notebook_itself_is_refused_in_words(kernel, line):
    error = kernel.error(f"def f():\n    {line}\nlaunch(f, num_processes=1)")
    assert "NameError: get_ipython: lines with ! or %" in error and "subprocess.run" in error


NOBODY = "input: this process has nobody to ask."


@pytest.mark.parametrize(
    "line, returned",
    [("input()", NOBODY), ("x = int(input('a number? '))", NOBODY), ("print(input)", "None")],
)
def test_nobody_is_asked_by_a_worker(kernel, line, returned):
    kernel.run(f"""
def f():
    try:
        {line}
    except EOFError as error:
        return str(error)
""")
    shown = kernel.run("returned = launch(f, num_processes=1)[0]; print('returned', returned)")
    assert shown.splitlines()[-1].startswith(f"returned {returned}")


def test_names_of_ipython_mean_what_they_do_elsewhere(kernel):
    kernel.run("""
def in_a_notebook():
    try:
        return get_ipython() is not None
    except NameError:
        return False
def f():
    display(Stats(2))
    if in_a_notebook():
        exit()
    return "done"
""")
    assert kernel.run("launch(f, num_processes=1)") == "Stats(loss=2)\n['done']"
