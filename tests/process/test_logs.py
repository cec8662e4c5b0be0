"""How cells want things logged holds for the workers, too: levels, formats and streams."""

import pytest
from jupyter_kernel import Kernel

FIRST = """
import contextlib, io, logging, sys
from d2lmgpu.course.exercises.checking import sendable, tried
from d2lmgpu.lab import runner
from d2lmgpu.lab.pool import POOL
from d2lmgpu.launch import launch

logging.basicConfig(level=logging.INFO, format="%(levelname)s of %(name)s: %(message)s")
own = logging.getLogger("own")
own.setLevel("DEBUG")
own.propagate = False
plain = logging.StreamHandler(sys.stdout)
plain.setFormatter(logging.Formatter("own {message}", style="{"))
odd = logging.StreamHandler(sys.stdout)
odd.setFormatter(logging.Formatter("odd %(message)s"))
odd.formatter.converter = lambda *_: None  # which no other process can have
for handler in (plain, odd, logging.FileHandler("own.log"), logging.StreamHandler(io.StringIO())):
    own.addHandler(handler)
logging.getLogger("quiet").setLevel("ERROR")

def says():
    logging.info("a"), logging.debug("b"), logging.getLogger("other").warning("c")
    own.debug("d"), logging.getLogger("quiet").warning("e")

def combine(means, sizes):
    says()
    return 0

def train(num_gpus, batch_size, lr):
    says()
"""
LAUNCHED = """
shown, errors = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors):
    launch(says, num_processes=2)
print(errors.getvalue() + shown.getvalue())
"""
CHECKED = "print(tried('combine', sendable('combine', combine), seeds=[0]).printed)"
TRAINED = """
ends = []
run = runner.Runner(on_end=ends.append)
run.start(train, num_gpus=1, batch_size=1, lr=0.1)
run.wait()
POOL.end_spare()
print(ends[0].log)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with Kernel(tmp_path_factory.mktemp("logs")) as kernel:
        kernel.run(FIRST)
        yield kernel


@pytest.mark.parametrize("cell", [LAUNCHED, CHECKED, TRAINED], ids=["launch", "exercise", "lab"])
def test_workers_log_as_their_notebook(kernel, cell):
    lines = set(kernel.run(cell).splitlines()) - {""}
    assert lines == {"INFO of root: a", "WARNING of other: c", "own d"}
