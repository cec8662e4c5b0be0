"""nbval does compare: a stored output that is wrong fails, in a small notebook and in a chapter."""

import os
import re
import shutil
import subprocess
import sys

from nbformat import v4, write
from notebooks import ROOT, code_cells, read, tags


def nbval(notebook, path):
    """The outcome of each cell of ``notebook`` at ``path``, with the settings of the chapters."""
    write(notebook, path)
    shutil.copy(ROOT / "tests" / "notebooks" / "sanitize.cfg", path.parent)
    options = ["-v", "-p", "no:cacheprovider", "--rootdir", path.parent, "-c", "/dev/null"]
    options += ["--nbval", "--nbval-sanitize-with", path.parent / "sanitize.cfg"]
    command = [sys.executable, "-m", "pytest", *options, path]
    env = os.environ | {"D2LMGPU_PROFILE": "test", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=path.parent, env=env, stdout=subprocess.PIPE, text=True)
    return re.findall(r"::Cell \d+ (PASSED|FAILED)", done.stdout)


def checked_cell(source, text):
    cell = v4.new_code_cell(source, execution_count=1)
    cell.metadata["tags"] = ["nbval-check-output", "keep_output"]
    cell.outputs = [v4.new_output("stream", text=text)]
    return cell


def test_devices_may_have_other_names_and_numbers_may_not_differ(tmp_path):
    texts = ["w on cpu:0 2\n", "w on cuda:1 2\n", "w on gpu(1) 2\n", "w on cpu:0 3\n"]
    cells = [checked_cell("print('w on cpu:0', 1 + 1)", text) for text in texts]
    outcomes = nbval(v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    assert outcomes == ["PASSED", "PASSED", "PASSED", "FAILED"]


def test_chapter_with_a_wrong_output_fails(tmp_path):
    """The first chapter up to its first checked cell, as it is, and that cell once more, wrong."""
    chapter = read(ROOT / "chapters" / "foundations" / "data-parallelism.ipynb")
    checked = next(cell for cell in code_cells(chapter) if "nbval-check-output" in tags(cell))
    chapter.cells = chapter.cells[: chapter.cells.index(checked) + 1]
    chapter.cells.append(checked_cell(checked.source, "something else\n"))
    *as_it_is, wrong = nbval(chapter, tmp_path / "chapter.ipynb")
    assert len(as_it_is) == len(code_cells(chapter)) - 1
    assert set(as_it_is) == {"PASSED"} and wrong == "FAILED"
