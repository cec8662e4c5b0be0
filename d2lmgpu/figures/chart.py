"""A picture of the course: what it looks like, what it says, and what is read in it."""

import io
import re
from html import escape

import matplotlib
from matplotlib.figure import Figure

from d2lmgpu.figures.data_attribute import data_attribute
from d2lmgpu.figures.style import COLORS, INK

WIDTH = 4.8  # inches: on a screen of 360 pixels letters of 10 points are still 9 pixels high
DRAWN_INK = "#222222"  # stands for the ink of the page, of which Matplotlib knows nothing
STYLE = {
    "font.size": 10,
    "axes.titlesize": 10,
    "text.color": DRAWN_INK,
    "xtick.color": DRAWN_INK,
    "ytick.color": DRAWN_INK,
    "grid.color": DRAWN_INK,
    "axes.edgecolor": DRAWN_INK,
    "axes.labelcolor": DRAWN_INK,
    "axes.facecolor": "none",
    "axes.prop_cycle": matplotlib.cycler(color=COLORS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.15,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "d2lmgpu",  # the same chart is the same file
}
styled = matplotlib.rc_context(STYLE)  # before a function: all that it draws

LETTER, SAMPLE = 6, 45  # points: of a legend a letter, at most, and what stands before a name
ROW = 0.2  # inches: a row of a legend

# What Matplotlib puts into each file: who made it, and names that repeat in a page of two pictures.
NOT_TOLD = dict.fromkeys(["Date", "Creator", "Format", "Type"])
COUNTED = re.compile(r'<g id="[\w.]+_\d+">')
MARKED = re.compile(r'<g id="(series|legend) (\d+)">')


class Chart(Figure):
    """A Matplotlib figure that shows itself in a notebook as an SVG picture.

    It takes the page's ink and stands on the page's ground; `alt` is a text that says what it
    shows; width and height are in inches, and of the width a phone shows `WIDTH`. In the built
    pages assets/pages/charts.js answers the pointer and the keyboard with what the picture carries
    of `add_readings`.
    """

    def __init__(self, alt: str, width: float, height: float):
        super().__init__(figsize=(width, height), layout="constrained", facecolor="none")
        self.alt = alt
        self.readings = {}  # series -> (artists, points)

    subplots = styled(Figure.subplots)

    def add_readings(self, series: str, artists, points) -> None:
        """Let the `artists`, which are switched off together, be read at `points`.

        series: its name, as in the legend. points: (x, y, where, value) in the units of the axes,
        with what is said of them: "devices 4" and "3.6"; x may be a pair, from where to where.
        A series that is told twice has all of these artists and points.
        """
        drawn, read = self.readings.setdefault(series, ([], []))
        drawn.extend(artists)
        read.extend(points)

    @styled
    def legend_below(self, handles=None, labels=None) -> None:
        """What the curves or the `handles` mean, in as many columns as the width has room for."""
        if handles is None:
            handles, labels = self.axes[0].get_legend_handles_labels()
        labels = list(labels)
        if not labels:
            return
        longest = max(map(len, labels))
        columns = int(72 * self.get_figwidth() / (SAMPLE + LETTER * longest))
        columns = max(1, min(columns, len(labels)))
        self.set_figheight(self.get_figheight() + ROW * -(-len(labels) // columns))
        self.legend(handles, labels, loc="outside lower center", ncols=columns)

    @styled
    def svg(self) -> str:
        """The picture as an SVG element that fits its column and speaks its text alternative."""
        self._mark()
        out = io.StringIO()
        self.savefig(out, format="svg", metadata=NOT_TOLD)
        svg = COUNTED.sub("<g>", out.getvalue().replace(DRAWN_INK, INK))
        svg = MARKED.sub(r'<g data-\1="\2">', svg)
        label = escape(self.alt, quote=True)
        look = f'style="max-width:100%;height:auto" fill="{INK}"'  # for black, left out
        opening = f'<svg role="img" aria-label="{label}" {self._read()}{look} '
        return svg[svg.index("<svg") :].replace("<svg ", opening, 1)

    _repr_html_ = svg

    def _mark(self) -> None:
        """Number what belongs to each series, in the picture and in the legend."""
        for number, (name, (drawn, _)) in enumerate(self.readings.items()):
            for artist in drawn:
                artist.set_gid(f"series {number}")
            legends = [*self.legends, *filter(None, [self.axes[0].get_legend()])]
            for text in (text for legend in legends for text in legend.get_texts()):
                if text.get_text() == name:
                    text.set_gid(f"legend {number}")

    def _read(self) -> str:
        """What is read in the picture, where: in parts of a thousand from its left and its top.

        After the picture was saved: until then nothing has its place.
        """
        if not self.readings:
            return ""
        place = self.axes[0].transData.transform
        width, height = self.bbox.size

        def point(x, y, where, value):
            start, end = x if isinstance(x, tuple) else (x, x)
            (left, up), (right, _) = place([(start, y), (end, y)])
            at = [1000 * left / width, 1000 * right / width, 1000 * (1 - up / height)]
            return [*map(round, at), where, value]

        return data_attribute(
            {name: [point(*p) for p in points] for name, (_, points) in self.readings.items()}
        )
