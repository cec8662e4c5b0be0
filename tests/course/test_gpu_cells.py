"""The cells that take GPUs: found, signed by records, and run here where a CPU stands for GPUs."""

import dataclasses
import re
from pathlib import Path

import nbformat
import pytest
from gpu_cells_stand_in import SAYS, SMALLER, STAND_IN, WRONG
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from programs import program

from d2lmgpu.course.gpu_cells import UNRUN, check_cells, gpu_cells, kept_records, run, sign
from d2lmgpu.records import store

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
CELLS = {cell.page: cell for cell in gpu_cells(CHAPTERS)}


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """What `run` starts sees two GPUs."""
    (tmp_path / "sitecustomize.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def on_stand_in(page, old="", new=""):
    """The row of a page's cell with what stands for a GPU; ``old`` becomes ``new`` in both."""
    cell = CELLS[page]
    code, says = cell.code, SAYS.get(page, "")
    assert (code + says).count(old) >= 1
    for text, smaller in {**SMALLER.get(page, {}), **({old: new} if old else {})}.items():
        code, says = code.replace(text, smaller), says.replace(text, smaller)
    return run(dataclasses.replace(cell, code=f"{says}\n{code}"), CHAPTERS)


def test_there_is_a_cell_for_each_thing_that_only_a_gpu_can_tell():
    assert set(CELLS) == set(WRONG) and len(CELLS) == len(gpu_cells(CHAPTERS))
    assert {cell.gpus for cell in CELLS.values()} == {1, 2}


@pytest.mark.parametrize("page", CELLS)
def test_a_cell_asks_for_as_many_as_its_tag_says(page):
    (number,) = re.findall(r"if torch\.cuda\.device_count\(\) < (\d):", CELLS[page].code)
    words = {1: "a GPU", 2: "two GPUs"}[CELLS[page].gpus]
    assert int(number) == CELLS[page].gpus and f'print("This cell takes {words}.")' in (
        CELLS[page].code
    )


@pytest.mark.parametrize("page", CELLS)
def test_a_cell_runs_where_gpus_are(page, two_gpus):
    row = on_stand_in(page)
    assert row["problem"] is None and "This cell takes" not in row["output"]
    assert row["output"]


@pytest.mark.soak
@pytest.mark.parametrize("page", CELLS)
def test_a_cell_refuses_what_is_wrong(page, two_gpus):
    problem = on_stand_in(page, *WRONG[page])["problem"]
    assert problem is not None and "AssertionError" in problem


def test_a_cell_that_finds_no_gpu_has_not_run(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # also beside one
    row = run(CELLS["concise/torchrun.ipynb"], CHAPTERS)
    assert row["problem"] == "it finds too few GPUs"


IN_A_PAGE = f"""{UNRUN}
import os
if os.environ["GPUS"] == "0":
    print("This cell takes two GPUs.")
else:
    assert double(2) == 4, "doubled"
    print("done")"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one page, with a cell for two GPUs; the path of the page. GPUS is how many the
    cell finds."""
    folder = tmp_path / "chapters" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "records").mkdir()
    cells = [
        new_markdown_cell("# Page\n\n## Doubled"),
        new_code_cell("def double(x):\n    return 2 * x", metadata={"tags": ["define"]}),
        new_code_cell(IN_A_PAGE, metadata={"tags": ["takes-2-gpus"]}),
        new_code_cell("def double(x):\n    return None", metadata={"tags": ["define"]}),
    ]
    nbformat.write(new_notebook(cells=cells), folder / "page.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUS", "2")
    return folder / "page.ipynb"


@pytest.fixture
def h200s(monkeypatch):
    """Records are of a machine with two GPUs."""
    gpus = ["GPU 0: NVIDIA H200", "GPU 1: NVIDIA H200"]
    machine = store.hardware.machine() | {"gpus": gpus}
    monkeypatch.setattr(store.hardware, "machine", lambda: machine)


def signs(course):
    """Sign the course; what changed, and the first line of its cell."""
    changed = program("gpu_signs").write(course.parents[2])
    return changed, nbformat.read(course, as_version=4).cells[2].source.split("\n")[0]


def test_a_cell_that_has_run_is_signed_and_a_changed_one_has_its_mark_again(course, h200s, capsys):
    assert signs(course) == ([], UNRUN)
    assert check_cells("chapters", gpus=2) == 0
    assert "part/page.ipynb, Doubled: ran in" in capsys.readouterr().out
    (where,), line = signs(course)
    assert re.fullmatch(r"# Run on 2 x NVIDIA H200 with PyTorch \S+, \d{4}-\d\d-\d\d\.", line)
    assert where == f"chapters/part/page.ipynb, Doubled: {line.removeprefix('# ')}"
    assert signs(course) == ([], line)
    for number in (1, 2):  # what it uses, and itself
        notebook = nbformat.read(course, as_version=4)
        notebook.cells[number].source += "  # changed"
        nbformat.write(notebook, course)
        assert signs(course)[1] == UNRUN
        notebook.cells[number].source = notebook.cells[number].source.removesuffix("  # changed")
        nbformat.write(notebook, course)
        assert signs(course)[1] == line


@pytest.mark.parametrize(
    ("gpus", "finds", "code", "says"),
    [
        (1, "2", "== 4", "not run, it takes 2 GPUs"),
        (2, "0", "== 4", "failed: it finds too few GPUs"),
        (2, "2", "== 5", "failed: AssertionError: doubled"),
    ],
)
def test_a_cell_that_has_not_run_keeps_its_mark(
    course, h200s, monkeypatch, capsys, gpus, finds, code, says
):
    monkeypatch.setenv("GPUS", finds)
    course.write_text(course.read_text().replace("== 4", code))
    assert check_cells("chapters", gpus) == ("failed" in says)
    assert f"part/page.ipynb, Doubled: {says}" in capsys.readouterr().out
    assert signs(course) == ([], UNRUN)


def test_a_cell_without_a_sign_is_refused(course):
    course.write_text(course.read_text().replace(UNRUN, "# Nobody knows."))
    with pytest.raises(ValueError, match=r"part/page\.ipynb, cell 2: begin with '# Written"):
        gpu_cells(course.parents[1])


def test_every_sign_of_the_course_is_that_of_its_records():
    records = kept_records(ROOT / "records")
    assert [(cell.page, cell.sign) for cell in CELLS.values()] == [
        (cell.page, sign(cell, records)) for cell in CELLS.values()
    ]
