"""nbval does compare: a stored output that is wrong fails, in a small notebook and in a chapter."""

import os
import shutil
import subprocess
import sys

import pytest
from nbformat import v4, write
from notebooks import ROOT, code_cells, read, tags


def nbval(path):
    """pytest's exit status for one notebook, with the settings of the chapters."""
    shutil.copy(ROOT / "tests" / "notebooks" / "sanitize.cfg", path.parent)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", path.parent, "-c", "/dev/null"]
    options += ["--nbval", "--nbval-sanitize-with", path.parent / "sanitize.cfg"]
    command = [sys.executable, "-m", "pytest", *options, path]
    env = os.environ | {"D2LMGPU_PROFILE": "test"}
    return subprocess.run(command, cwd=path.parent, env=env, stdout=subprocess.DEVNULL).returncode


def small(text):
    cell = v4.new_code_cell("print('w on cpu:0', 1 + 1)", execution_count=1)
    cell.metadata["tags"] = ["nbval-check-output", "keep_output"]
    cell.outputs = [v4.new_output("stream", text=text)]
    return v4.new_notebook(cells=[cell])


@pytest.mark.parametrize(
    "text, status",
    [("w on cpu:0 2\n", 0), ("w on cuda:1 2\n", 0), ("w on gpu(1) 2\n", 0), ("w on cpu:0 3\n", 1)],
)
def test_small_notebook(tmp_path, text, status):
    write(small(text), tmp_path / "small.ipynb")
    assert nbval(tmp_path / "small.ipynb") == status


def test_chapter_with_a_wrong_output_fails(tmp_path):
    """The first chapter, cut after its first checked cell, as it is and then with it wrong."""
    chapter = read(ROOT / "chapters" / "foundations" / "data-parallelism.ipynb")
    checked = next(cell for cell in code_cells(chapter) if "nbval-check-output" in tags(cell))
    chapter.cells = chapter.cells[: chapter.cells.index(checked) + 1]
    write(chapter, tmp_path / "chapter.ipynb")
    assert nbval(tmp_path / "chapter.ipynb") == 0
    checked.outputs = [v4.new_output("stream", text="something else\n")]
    write(chapter, tmp_path / "chapter.ipynb")
    assert nbval(tmp_path / "chapter.ipynb") == 1
