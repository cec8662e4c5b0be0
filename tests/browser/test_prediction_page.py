"""Predictions in a real JupyterLab, and in a page that is a file, with the network cut."""

import csv
import io
from pathlib import Path

import nbformat
import pytest
from contrast import FAINT
from pages import KERNEL, open_notebook, wait_for_kernel
from training_page import STYLES, THEMES

from d2lmgpu.figures.site import BOOK, PACKAGE
from d2lmgpu.predictions import Prediction, predictions
from d2lmgpu.predictions.words import comparison

CELLS = [
    """\
from d2lmgpu.predictions import Prediction, predictions
from d2lmgpu.predictions.words import comparison
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
        table.get_by_role("button", name="Download as CSV").click()
    (row,) = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert (row["predicted"], row["happened"], row["source"]) == ("1.8", "1.5", "measured")
    assert float(row["percent"]) == pytest.approx(20)


SCRIPTS = ["predictions.js"]


@pytest.fixture
def book(quiet, tmp_path, monkeypatch):
    """A built page with three questions, their outcomes and the table, opened as a file."""
    monkeypatch.setenv(BOOK, "1")
    question = Prediction("page/speedup", "How many times as fast?", "times", low=0, high=4)
    other = Prediction("page/seconds", "How long does <b>it</b> take?", "s", low=0, high=9)
    noisy = Prediction("page/noisy", "And beside others?", "times", low=0, high=4)
    parts = [question, question.happened(1.5), other, other.happened(0, "simulated")]
    parts += [noisy, noisy.happened(0.7, unsteady="other programs ran"), predictions()]
    first, *rest = (part._repr_mimebundle_()["text/html"] for part in parts)
    between = "<p id=telling>It was one and a half.</p><div><p id=deep>Truly.</p></div>"
    body = "".join([f"<div class=cell>{first}</div>", between, *rest])
    styles = [next(s / name for s in THEMES if (s / name).exists()) for name in STYLES]
    web = PACKAGE / "predictions" / "web"
    styles += [PACKAGE.parent / "assets" / "course.css", web / "predictions.css"]
    links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles)
    scripts = "".join(f'<script src="{(web / name).as_uri()}"></script>' for name in SCRIPTS)
    file = tmp_path / "page.html"

    def show(theme="light"):
        file.write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>x</title>'
            f"{links}{scripts}<body><main><h1>x</h1>{body}</main>"
        )
        quiet.context.set_offline(True)
        quiet.goto(file.as_uri())
        return quiet

    return show


def answer(page):
    return page.locator("#prediction-page-speedup-outcome")


def lock(page, question, value):
    page.get_by_label(question).fill(value)
    page.keyboard.press("Enter")


def blurred(page):
    return page.evaluate(
        "['telling', 'deep'].map(id => document.getElementById(id).closest('[inert]') !== null)"
    )


def press(page, name):
    page.locator("#prediction-page-speedup").get_by_role("button", name=name).click()


@pytest.mark.parametrize("absurd", ["5", "1e9", "-1", "", "fast", "1,500", "Infinity", "0x1"])
def test_what_cannot_be_meant_is_answered(book, absurd):
    page = book()
    lock(page, "How many times as fast?", absurd)
    field = page.get_by_label("How many times as fast?")
    assert field.get_attribute("aria-invalid") == "true"
    assert "from 0 to 4" in page.get_by_role("alert").first.inner_text()
    assert "1.5" not in answer(page).inner_text() and blurred(page) == [True, True]


@pytest.mark.parametrize("text, value", [("1,5", "1.5"), (" .5 ", "0.5"), ("2", "2")])
def test_a_number_is_read_as_it_is_written(book, text, value):
    page = book()
    lock(page, "How many times as fast?", text)
    assert f"{value} times" in page.locator(".prediction-locked").inner_text()


def test_in_a_page_a_prediction_can_be_taken_back_until_the_outcome_is_shown(book):
    page = book()
    lock(page, "How many times as fast?", "3")
    page.reload()
    press(page, "Take it back")
    lock(page, "How many times as fast?", "0.3")
    assert blurred(page) == [True, True] and "1.5" not in answer(page).inner_text()
    press(page, "Show what happened")
    assert blurred(page) == [False, False]
    page.reload()
    assert page.get_by_role("button", name="Take it back").count() == 0
    assert "predicted 0.3," in answer(page).get_by_role("img").get_attribute("aria-label")


def test_who_does_without_sees_it_all_and_a_later_guess_is_marked(book):
    page = book()
    press(page, "Show it without guessing")
    assert blurred(page) == [False, False]
    assert "No prediction" in answer(page).inner_text()
    lock(page, "How many times as fast?", "1.5")
    assert "after the outcome had been shown" in answer(page).inner_text()


def test_in_a_page_the_outcome_is_hidden_until_the_prediction_is_locked(book):
    page = book()
    assert "1.5" not in page.locator("main").inner_text()
    lock(page, "How many times as fast?", "1.2")
    press(page, "Show what happened")
    for _ in range(2):
        label = answer(page).get_by_role("img").get_attribute("aria-label")
        assert label == "From 0 to 4: predicted 1.2, measured 1.5"
        assert "0.3 (20 %) too low" in answer(page).get_by_role("status").text_content()
        assert page.locator("#prediction-page-speedup input").count() == 0
        assert "simulated" not in page.locator("main").inner_text().lower(), "the other one's"
        page.reload()
    assert page.locator("tbody tr").count() == 1
    assert "1.2 times" in page.locator("tbody").text_content()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    (row,) = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert (row["name"], row["predicted"], row["happened"]) == ("page/speedup", "1.2", "1.5")


def test_what_is_no_text_stays_text_and_zero_has_no_percentage(book):
    page = book()
    lock(page, "How long does <b>it</b> take?", "2")
    page.get_by_role("button", name="Show what happened").click()
    text = page.locator("#prediction-page-seconds-outcome").get_by_role("status").text_content()
    assert "Simulated: 0 s" in text and "2 too high" in text and "%" not in text


def test_an_unsteady_outcome_is_shown_and_judges_nothing(book):
    page = book()
    lock(page, "And beside others?", "1.5")
    page.locator("#prediction-page-noisy").get_by_role("button", name="Show what").click()
    text = page.locator("#prediction-page-noisy-outcome").get_by_role("status").text_content()
    assert "0.7 times" in text and "other programs ran" in text and "too high" not in text
    page.reload()
    page.locator("#prediction-page-noisy").get_by_role("button", name="Take it back").click()
    assert page.get_by_label("And beside others?").count() == 1


def test_another_tab_cannot_change_what_is_locked(book):
    page = book()
    other = page.context.new_page()
    other.goto(page.url)
    lock(page, "How many times as fast?", "1")
    press(page, "Show what happened")
    lock(other, "How many times as fast?", "3")
    assert "predicted 1," in answer(other).get_by_role("img").get_attribute("aria-label")


def test_a_browser_that_keeps_nothing_is_told_so(book):
    page = book()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })"
    )
    page.reload()
    lock(page, "How many times as fast?", "1")
    press(page, "Show what happened")
    assert answer(page).get_by_role("img").count() == 1
    assert "private window" in page.locator("#prediction-page-speedup").text_content()
    page.reload()
    assert page.get_by_label("How many times as fast?").count() == 1


def test_what_is_damaged_in_the_browser_is_said(book):
    page = book()
    page.evaluate("localStorage.setItem('d2lmgpu-prediction:page/speedup', '{')")
    page.reload()
    text = page.locator("#prediction-page-speedup").inner_text()
    assert "d2lmgpu-prediction:page/speedup" in text
    assert "1.5" not in answer(page).inner_text()


def test_without_scripts_the_outcome_is_behind_its_summary(book, browser):
    url = book().url
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(url)
        element = answer(page).locator("details p")
        assert not element.is_visible()
        answer(page).locator("summary").click()
        assert element.text_content() == "Measured: 1.5 times."


def test_the_keyboard_is_enough(book):
    page = book()
    page.keyboard.press("Tab")
    page.keyboard.type("1.25")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.className") == "prediction-locked"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert answer(page).get_by_role("img").count() == 1
    page.keyboard.press("Tab")
    names = page.evaluate("[...document.activeElement.labels].map(e => e.textContent)")
    assert names == ["How long does <b>it</b> take?"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_and_fits_a_telephone(book, theme):
    page = book(theme)
    page.set_viewport_size({"width": 360, "height": 800})
    lock(page, "How many times as fast?", "1.25")
    press(page, "Show what happened")
    lock(page, "How long does <b>it</b> take?", "")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for picture in page.get_by_role("img").locator("text").all():
        box = picture.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    read = page.evaluate(FAINT, ".prediction")
    assert read["count"] > 5 and read["faint"] == []


def test_the_page_says_what_the_kernel_says(book):
    page = book()
    cases = [
        (1.8, 1.53, "times"),
        (0.75, 0.7512, ""),
        (2, 0, "s"),
        (1234567, 99.96, "B"),
        (3, 3, ""),
        (-0.5, -2, ""),
        (None, 7, "s"),
    ]
    for guess, outcome, unit in cases:
        known = None if guess is None else {"value": guess, "shown": outcome == 0}
        happened = {"value": outcome, "source": "modelled"}
        entry = {"unit": unit, "predicted": known, "happened": happened, "remark": "Also this."}
        for stored in (entry, entry | {"unsteady": "other programs ran"}):
            assert page.evaluate("entry => PredictionParts.words(entry)", stored) == comparison(
                stored
            )
