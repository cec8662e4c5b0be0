"""What all pictures of the course share: colours, and how a number is written."""

from math import isfinite
from numbers import Real

from d2lmgpu.figures.checks import need

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILLION = "#D55E00"
DEVICE_COLORS = [BLUE, ORANGE, GREEN, PINK]
LINE_COLORS = [BLUE, VERMILLION, GREEN, PINK]  # a thin orange line is too pale on white
INK = "#222222"


def number(value) -> str:
    """Three digits, or all of those before the point, thousands with commas."""
    need(isinstance(value, Real), "the number", value, "a real number")
    if isfinite(value) and abs(value) >= 99.95:  # what rounds to 100 has no digit after the point
        return f"{value:,.0f}"
    return f"{value:.3g}"
