"""Pictures for explorers: what cannot be drawn is refused in words of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.figures import svg
from d2lmgpu.figures.checks import FigureError

ODD = st.one_of(
    st.none(), st.text(max_size=3), st.integers(-3, 3000), st.floats(), st.booleans(),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.one_of(st.integers(-1, 2000), st.text(max_size=1), st.floats()),
                    st.one_of(st.floats(), st.integers(-2, 5), st.none()), max_size=3),
    st.lists(st.tuples(st.floats(), st.floats()), max_size=2),
)  # fmt: skip
GOOD = {
    svg.scaling: ({1: 1, 2: 1.5}, {1: 1, 2: 2}, 2, "P"),
    svg.messages: ([[1, 0], [0, 2]], 2, [(0, 1)], "P"),
    svg.overlap: (1.0, 2.0, [(1.0, 4.0)], "P"),
    svg.shares: ({0.5: 1.0, 0.75: 0.8}, 0.5, 0.75, "P"),
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


@pytest.mark.parametrize("draw, place, wrong", [
    (svg.scaling, 0, {2: 0.0}), (svg.scaling, 1, {2048: 1.0}), (svg.scaling, 1, None),
    (svg.messages, 1, 0), (svg.messages, 2, [(0, 0)]), (svg.messages, 2, [(0, 2)]),
    (svg.overlap, 2, []), (svg.overlap, 2, [(1.0,)]), (svg.overlap, 0, -1.0),
    (svg.shares, 1, 0.6), (svg.shares, 0, {2.0: 1}),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(draw, place, wrong):
    arguments = list(GOOD[draw])
    arguments[place] = wrong
    with pytest.raises(FigureError):
        draw(*arguments)
