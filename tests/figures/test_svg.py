"""Pictures for explorers: what cannot be drawn is refused in words of ours."""

import json

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.figures import sends, svg
from d2lmgpu.figures.checks import FigureError

ODD = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.integers(-3, 3000),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(
        st.one_of(st.integers(-1, 2000), st.text(max_size=1), st.floats()),
        st.one_of(st.floats(), st.integers(-2, 5), st.none()),
        max_size=3,
    ),
    st.lists(st.tuples(st.floats(), st.floats()), max_size=2),
)
GOOD = {
    svg.scaling: ({1: 1, 2: 1.5}, {1: 1, 2: 2}, {2: (1, 2)}, 2, "P"),
    svg.paying: ({8: 0.5, 16: 2}, 8, 11, "P"),
    sends.overlapping: (1.0, 2.0, [(1.0, 4.0)], "P"),
    svg.shares: ({0.5: 1.0, 0.75: 0.8}, 0.5, 0.75, "P"),
    svg.picture: (20, 10, "P", [], {"a": [(1, 2, 3, "here", "4")]}),
}


@pytest.mark.parametrize("draw", GOOD, ids=lambda draw: draw.__name__)
@given(data=st.data())
def test_a_wrong_argument_is_refused_or_drawn(draw, data):
    arguments = list(GOOD[draw])
    place = data.draw(st.integers(0, len(arguments) - 1))
    arguments[place] = data.draw(ODD)
    try:
        picture = draw(*arguments)
    except FigureError:
        return
    assert picture.startswith("<svg") and "nan" not in picture and "inf" not in picture


@pytest.mark.parametrize(
    "draw, place, wrong",
    [
        (svg.scaling, 0, {2: 0.0}),
        (svg.scaling, 1, {2048: 1.0}),
        (svg.scaling, 1, None),
        (svg.scaling, 2, {2: 1.0}),
        (svg.paying, 0, {8: 1}),
        (svg.paying, 1, 9),
        (svg.paying, 2, 17),
        (sends.overlapping, 2, []),
        (sends.overlapping, 2, [(1.0,)]),
        (sends.overlapping, 0, -1.0),
        (svg.shares, 1, 0.6),
        (svg.shares, 0, {2.0: 1}),
        (svg.picture, 4, 3),
        (svg.picture, 4, {"a": [(1, 2)]}),
        (svg.picture, 4, {"a": [(1, 2, 3, 4, 5)]}),
        (svg.picture, 0, 0),
        (svg.picture, 3, [1]),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, place, wrong):
    arguments = list(GOOD[draw])
    arguments[place] = wrong
    with pytest.raises(FigureError):
        draw(*arguments)


def read(picture):
    """What the pointer is told: {name of a series: its points}."""
    report = json.loads(BeautifulSoup(picture, "html.parser").svg["data-chart"])
    return {series["name"]: series["points"] for series in report}


def test_a_curve_tells_each_of_its_values_where_it_is_drawn():
    picture = svg.scaling({1: 1, 2: 1.5}, {1: 1, 2: 1.9, 4: 3.25}, {}, 2, "It's < P")
    chart = read(picture)
    assert {name: [point[3:] for point in points] for name, points in chart.items()} == {
        "modelled": [["1 GPU", "1"], ["2 GPUs", "1.9"], ["4 GPUs", "3.25"]],
        "measured": [["1 GPU", "1"], ["2 GPUs", "1.5"]],
    }
    drawn = BeautifulSoup(picture, "html.parser").select("polyline")[1]["points"].split()
    for (left, right, up, *_), point in zip(chart["modelled"], drawn, strict=True):
        x, y = map(float, point.split(","))
        assert left == right == pytest.approx(1000 * x / svg.WIDTH, abs=1)
        assert up == pytest.approx(1000 * y / 278, abs=1)


def test_each_span_of_a_step_tells_its_times():
    chart = read(sends.overlapping(0.001, 0.002, [(0.001, 0.0025), (0.0025, 0.004)], "P"))
    assert [where for points in chart.values() for *_, where, _ in points] == [
        "GPU, 0 to 1 ms",
        "GPU, 1 to 3 ms",
        "network, 1 to 2.5 ms",
        "network, 2.5 to 4 ms",
    ]
    (forward,), (backward,), both = chart.values()
    assert forward[1] == backward[0] == both[0][0], "drawn where it begins"
    assert forward[2] == backward[2] < both[0][2]
