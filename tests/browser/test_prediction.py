"""Predictions in a real JupyterLab, and in a page that is a file, with the network cut."""

import csv
import io
import json
from pathlib import Path

import nbformat
import pytest
from pages import KERNEL, open_notebook, wait_for_kernel
from training_page import STYLES, THEMES

from d2lmgpu.figures.site import BOOK, PACKAGE
from d2lmgpu.lab import Prediction, predictions

CELLS = [
    """\
from d2lmgpu.lab import Prediction, predictions
p = Prediction("page/speedup", "How many times as fast?", "times", low=0, high=4)
p""",
    "p.happened(1.5)",
    "predictions()",
]


def run_cell(page, index):
    page.evaluate(
        """async index => {
            window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }""",
        index,
    )
    return page.locator(".jp-Notebook .jp-CodeCell").nth(index)


@pytest.fixture
def notebook(tmp_path, monkeypatch, request, page):
    """JupyterLab with the three cells; nothing has been run."""
    monkeypatch.setenv("D2LMGPU_PREDICTIONS", str(tmp_path / "predictions"))
    server = request.getfixturevalue("server")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    file = server.notebooks / "lab.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), file)
    open_notebook(page, server)
    return page


def test_in_jupyterlab_a_prediction_stays_through_a_restart(notebook):
    page, keys = notebook, notebook.keyboard
    field = run_cell(page, 0).locator("input")
    field.focus()
    keys.type("dd7")  # no digits, and in command mode the end of a cell
    keys.press("Enter")
    field.and_(page.locator("[aria-invalid=true]")).wait_for()
    assert field.evaluate("e => document.activeElement === e")
    field.fill("")
    keys.type("1.8")
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Lock"
    keys.press("Enter")
    locked = page.locator(".prediction-locked", has_text="1.8 times")
    locked.wait_for()
    assert locked.evaluate("e => document.activeElement === e"), "the keyboard's place is kept"
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(CELLS)

    first = locked.text_content()
    run_cell(page, 0)
    page.evaluate(f"{KERNEL}.restart()")
    wait_for_kernel(page)
    cell = run_cell(page, 0)
    page.wait_for_function("document.querySelectorAll('.prediction-locked').length === 1")
    assert cell.locator(".prediction-locked").text_content() == first
    assert cell.locator("input").count() == 0

    answer = run_cell(page, 1)
    picture = answer.get_by_role("img")
    picture.wait_for()
    assert picture.get_attribute("aria-label") == "From 0 to 4: predicted 1.8, measured 1.5"
    assert "0.3 (20 %) too high" in answer.get_by_role("status").text_content()

    table = run_cell(page, 2)
    table.locator("tbody tr").wait_for()
    with page.expect_download() as download:
        table.get_by_role("button").click()
    (row,) = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert (row["predicted"], row["happened"], row["source"]) == ("1.8", "1.5", "measured")
    assert float(row["percent"]) == pytest.approx(20)
