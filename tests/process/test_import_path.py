"""Modules beside a notebook, found by a relative folder, after the kernel has left its own."""

import pytest
from jupyter_kernel import Kernel

MODULE = """
class Mine:
    def __init__(self, n):
        self.n = n

def double(x):
    return 2 * x
"""
FIRST = """
import os, sys
from d2lmgpu.course.exercises.checking import sendable, tried
from d2lmgpu.launch import launch
sys.path.append("../src/")
import beside
os.chdir("/")

def combine(means, sizes):
    beside.double(1)
    raise RuntimeError("beside was there")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    for name in ("notebooks", "src"):
        (folder / name).mkdir()
    (folder / "src" / "beside.py").write_text(MODULE)
    with Kernel(folder / "notebooks") as kernel:
        kernel.run(FIRST)
        yield kernel


@pytest.mark.parametrize(
    "cell, shown",
    [
        ("launch(lambda: beside.double(3), num_processes=2)", "[6, 6]"),
        ("launch(beside.double, 4, num_processes=1)", "[8]"),
        ("launch(lambda mine: beside.Mine(mine.n + 1), beside.Mine(1), num_processes=1)[0].n", "2"),
        ("'beside was there' in str(tried('combine', sendable('combine', combine)))", "True"),
    ],
)
def test_workers_find_them_too(kernel, cell, shown):
    assert kernel.run(cell) == shown
