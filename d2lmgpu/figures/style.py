"""What all pictures of the course share: colours, and how a number is written."""

from math import isfinite
from numbers import Real

from d2lmgpu.figures.checks import need

# Those of Okabe and Ito's colours, which the colour-blind can tell apart, that have a contrast of 3
# at least both with white pages and with nearly black ones.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLORS = [BLUE, VERMILION, GREEN, PINK]  # of devices, and of the lines of a chart
GRAY = "#7F7F7F"
TINT = 0.5  # how much of its colour an area shows at most where ink is read on it
INK = "currentColor"  # pictures have no ground of their own: they take the page's, and its ink


def number(value) -> str:
    """Three digits, or all of those before the point, thousands with commas."""
    need(isinstance(value, Real), "the number", value, "a real number")
    if isfinite(value) and abs(value) >= 99.95:  # what rounds to 100 has no digit after the point
        return f"{value:,.0f}"
    return f"{value:.3g}"
