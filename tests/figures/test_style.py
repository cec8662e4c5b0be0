"""One way to write a number, for all pictures and tables."""

import pytest

from d2lmgpu.figures import charts
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.style import number


@pytest.mark.parametrize("value, text", [
    (0, "0"), (0.12345, "0.123"), (9.999, "10"), (99.94, "99.9"), (99.96, "100"), (100.4, "100"),
    (999.4, "999"), (999.6, "1,000"), (-999.6, "-1,000"), (1234567.8, "1,234,568"), (1e-5, "1e-05"),
])  # fmt: skip
def test_three_digits_or_all_of_those_before_the_point(value, text):
    assert number(value) == text


def test_charts_write_numbers_so_too():
    chart = charts.bars({"a": 999.6}, {}, "Point", "samples/s")
    assert "1,000" in chart.alt and "e+03" not in chart.alt


@pytest.mark.parametrize("wrong", [None, "3", [1]])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(FigureError):
        number(wrong)
