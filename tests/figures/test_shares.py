"""The picture of splitting a batch between a fast and a slow device."""

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.figures import svg


@pytest.fixture
def drawn():
    picture = svg.shares({0: 4.0, 0.5: 2.0, 0.8: 0.8, 1: 1.0}, 0.5, 0.8, "P & Q")
    return BeautifulSoup(picture, "html.parser")


def test_the_curve_is_where_the_numbers_say_and_dashed(drawn):
    assert drawn.select_one("svg")["aria-label"] == "P & Q"
    line = drawn.select_one("polyline")
    points = [tuple(map(float, point.split(","))) for point in line["points"].split()]
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = points
    assert line["stroke-dasharray"], "modelled"
    assert (x1 - x0) / (x3 - x0) == pytest.approx(0.5, abs=0.01)
    assert (x2 - x0) / (x3 - x0) == pytest.approx(0.8, abs=0.01)
    assert y0 < y1 < y3 < y2, "the longer a step, the higher"
    assert (y1 - y0) / (y3 - y0) == pytest.approx(2 / 3, abs=0.01)


def test_the_choice_and_the_best_are_marked_and_told(drawn):
    points = drawn.select_one("polyline")["points"].split()
    marks = {c.title.string: f"{c['cx']},{c['cy']}" for c in drawn.select("circle")}
    assert marks == {"best: 80%, 0.80": points[2], "chosen: 50%, 2.00": points[1]}


def test_what_is_too_long_stays_in_the_picture():
    high = BeautifulSoup(svg.shares({0: 8.0, 1: 4.0}, 0, 1, "P"), "html.parser")
    first, last = (p.split(",")[1] for p in high.select_one("polyline")["points"].split())
    assert first == last
