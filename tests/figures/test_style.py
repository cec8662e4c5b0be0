"""One palette and one way to write a number, for all pictures and tables."""

import pytest
from matplotlib.colors import to_rgb

from d2lmgpu.figures import charts
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.style import COLORS, GRAY, TINT, number

PAGES = {  # ground and ink
    "the book, light": ("#ffffff", "#222832"),
    "the book, dark": ("#121212", "#ced6dd"),
    "JupyterLab, light": ("#ffffff", "#212121"),
    "JupyterLab, dark": ("#111111", "#ffffff"),
}
EVERY_PAGE = pytest.mark.parametrize("page", PAGES)


def light(color):
    """Relative luminance, as WCAG 2.1 defines it."""
    parts = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


def contrast(single, other):
    pale, dark = sorted((light(single), light(other)), reverse=True)
    return (pale + 0.05) / (dark + 0.05)


@EVERY_PAGE
@pytest.mark.parametrize("color", [*COLORS, GRAY])
def test_every_colour_stands_out_and_ink_is_read_on_its_tint(page, color):
    ground, ink = PAGES[page]
    tinted = [TINT * c + (1 - TINT) * g for c, g in zip(to_rgb(color), to_rgb(ground))]
    assert contrast(color, ground) >= 3
    assert contrast(ink, tinted) >= 4.5


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (0.12345, "0.123"),
        (9.999, "10"),
        (99.94, "99.9"),
        (99.96, "100"),
        (100.4, "100"),
        (999.4, "999"),
        (999.6, "1,000"),
        (-999.6, "-1,000"),
        (1234567.8, "1,234,568"),
        (1e-5, "1e-05"),
    ],
)
def test_three_digits_or_all_of_those_before_the_point(value, text):
    assert number(value) == text


def test_charts_write_numbers_so_too():
    chart = charts.bars({"a": 999.6}, {}, "Point", "samples/s")
    assert "1,000" in chart.alt and "e+03" not in chart.alt


@pytest.mark.parametrize("wrong", [None, "3", [1]])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(FigureError):
        number(wrong)
