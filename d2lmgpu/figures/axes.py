"""What small SVG pictures are put together from: texts, and curves and dots on two axes."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape


def text(x, y, words, anchor="start", fill="currentColor", more="") -> str:
    """A text that starts at x, or has its middle or its end there."""
    look = f'text-anchor="{anchor}" font-size="11" fill="{fill}"{more}'
    return f'<text x="{x:.0f}" y="{y:.0f}" {look}>{escape(str(words))}</text>'


@dataclass
class Axes:
    """Where a picture's axes are, in pixels; points on them are written with so many `digits`."""

    left: int
    right: int
    top: int
    floor: int
    digits: int = 0

    def at(self, across, up) -> tuple[str, str]:
        """The point at these parts of the two axes, from 0 to 1."""
        x = self.left + across * (self.right - self.left)
        y = self.floor - up * (self.floor - self.top)
        return f"{x:.{self.digits}f}", f"{y:.{self.digits}f}"

    def lines(self, more="") -> str:
        """The axes themselves."""
        path = f"M{self.left},{self.top}V{self.floor}H{self.right}"
        return f'<path d="{path}" fill="none" stroke="currentColor"{more}/>'

    def ticks(self, point, below_words, left_words) -> Iterator[str]:
        """The numbers of a point: one below the x axis, one beside the y axis."""
        x, y = map(float, point)
        yield text(x, self.floor + 15, below_words, "middle")
        yield text(self.left - 5, y, left_words, "end")


def curve(points, look) -> str:
    """A line through the points."""
    return f'<polyline points="{" ".join(map(",".join, points))}" fill="none" {look}/>'


def dot(point, look, words) -> str:
    """A circle that says ``words`` when it is pointed at."""
    x, y = point
    return f'<circle cx="{x}" cy="{y}" {look}>\n<title>{escape(words)}</title></circle>'
