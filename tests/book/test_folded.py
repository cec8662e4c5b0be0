"""Checks fold below their cell, long code behind a button; nothing of either is lost."""

import ast

import nbformat
import pytest
from programs import program
from test_pages import EVERY_PAGE, HTML, ROOT, parsed

CODE = """cell = 1  # of the lesson
# both parts add up
# to the whole
assert 1 + 1 == 2
assert (
    2 + 2
    == 4
)

print("seen")
def f():
    assert True
"""


def test_a_cell_is_divided_into_lesson_and_checks():
    lesson, checks, number, words = program("folds").divided(CODE)
    assert lesson == 'cell = 1  # of the lesson\n\nprint("seen")\ndef f():\n    assert True'
    assert number == 2 and words == ["both parts add up to the whole"]
    assert [type(s) for s in ast.parse(checks).body] == [ast.Assert, ast.Assert]


@pytest.mark.parametrize("code", ["print(1)", "def f(:\n  assert 1", "%time f()\nx = 1"])
def test_what_has_no_checks_stays_as_it_is(code):
    assert program("folds").divided(code)[:3] == (code, "", 0)


def assertions(code):
    """How many stand at the top level."""
    try:
        return sum(isinstance(statement, ast.Assert) for statement in ast.parse(code).body)
    except SyntaxError:  # a magic
        return 0


@EVERY_PAGE
def test_no_check_stands_in_the_way_and_none_is_lost(built, page):
    path = ROOT / f"{page}.ipynb"
    if not path.exists():
        return
    cells = nbformat.read(path, as_version=4).cells
    unseen = {"remove-cell", "remove-input"}
    written = sum(
        assertions(cell.source)
        for cell in cells
        if cell.cell_type == "code" and not unseen & {*cell.metadata.get("tags", [])}
    )
    blocks = parsed(HTML / f"{page}.html").select(".cell_input pre")
    folded = [pre.get_text() for pre in blocks if pre.find_parent("details")]
    assert sum(map(assertions, folded)) == written
    shown = [pre.get_text() for pre in blocks if not pre.find_parent("details")]
    assert sum(map(assertions, shown)) == 0


HEIGHTS = """() => [...document.querySelectorAll(".cell_input > div pre")]
    .filter(pre => pre.checkVisibility())
    .map(pre => pre.clientHeight / parseFloat(getComputedStyle(pre).lineHeight))"""


@pytest.mark.parametrize("width, most", [(1280, 27), (390, 14)])
def test_code_is_no_longer_than_a_screen_until_it_is_asked_for(browser, built, width, most):
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        page.goto((built / "chapters/memory/fits.html").as_uri())
        heights = page.evaluate(HEIGHTS)
        assert heights and max(heights) <= most
        page.locator(".more-code:visible").first.click()
        assert max(page.evaluate(HEIGHTS)) > max(heights) + 1
