"""Slides of a chapter: a section begins one, each cell has its own, and all is plain Markdown."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from jupyter_cache import get_cache
from nbformat.v4 import new_output as output
from notebooks import ROOT, code_cells, headings, read, tags
from programs import program

CHAPTER = "chapters/scaling/allreduce.ipynb"


@pytest.fixture(scope="module")
def slides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    program("slides").main(folder, CHAPTER)
    (file,) = folder.iterdir()
    assert file.name == "scaling-allreduce.slides.html"
    return BeautifulSoup(file.read_text(), "html.parser").select_one(".reveal > .slides")


def test_each_section_begins_a_slide_and_each_cell_has_one(slides):
    columns = slides.find_all("section", recursive=False)
    notebook = read(ROOT / CHAPTER)
    text = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    titles = [title for source in text for title in headings(source)]
    slide_titles = [column.find(["h1", "h2"]).get_text().removesuffix("¶") for column in columns]
    assert slide_titles[1:] == titles
    dropped = {"remove-cell", "solution"}
    shown = [cell for cell in code_cells(notebook) if not dropped & tags(cell)]
    assert len(slides.select(".jp-CodeCell")) == len(shown)
    assert all(len(slide.select(".jp-Cell")) <= 1 for slide in slides.select("section section"))


def test_the_outputs_are_those_of_the_book_s_last_run(tmp_path, monkeypatch):
    made, kept = program("slides"), tmp_path / "kept"
    monkeypatch.setattr(made, "KEPT", kept)
    ran = read(ROOT / CHAPTER)
    for number, cell in enumerate(code_cells(ran), 1):
        cell.outputs, cell.execution_count = [output("stream", text="as it ran\n")], number
    nbformat.write(ran, tmp_path / "ran.ipynb")
    get_cache(kept).cache_notebook_file(tmp_path / "ran.ipynb")
    page = made.make(Path(CHAPTER), tmp_path).read_text()
    assert page.count("as it ran") > 5


def test_nothing_is_left_that_only_the_book_knows(slides):
    for code in slides.select("pre, code"):
        code.decompose()
    text = slides.get_text()
    assert "Checked Exercises" not in text and "Kaggle" not in text
    assert not re.search(r"\{(term|cite|numref|ref|doc)\}|^\([\w-]+\)=", text, re.M)
