"""Tables: the same rows in a page and as text, and what is none is refused."""

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.table import Table

ROWS = [{"run": "a <1>", "error": "+4%"}, {"run": "b", "error": "-12%"}]


def test_a_page_has_a_table_with_headings_and_a_terminal_the_same_in_columns():
    page = BeautifulSoup(Table(ROWS)._repr_html_(), "html.parser")
    read = [[cell.string for cell in row.select("th, td")] for row in page.select("tr")]
    assert read == [["run", "error"], ["a <1>", "+4%"], ["b", "-12%"]]
    assert [head["scope"] for head in page.select("th")] == ["col", "col", "row", "row"]
    assert repr(Table(ROWS)) == "run    error\na <1>    +4%\nb       -12%"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "ab",
        [1],
        [{}],
        [{"a": 1}],
        [{1: "a"}],
        [{"a": "1"}, {"b": "1"}],
        [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}],
        {"a": "1"},
    ],
)
def test_what_is_no_table_is_refused(wrong):
    with pytest.raises(FigureError, match="same columns"):
        Table(wrong)
