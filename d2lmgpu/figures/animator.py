"""A curve that grows while a run goes on."""

import sys
from itertools import cycle
from math import isfinite

from d2lmgpu.figures.divergence import DIVERGED, finite, gaps, is_several, mark, numbers
from d2lmgpu.process.events import report


def in_notebook() -> bool:
    """Whether this runs under IPython. Worker processes, which do not, need not import it."""
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None


class Animator:
    """Plot data as it comes, in one figure, with D2L's own interface.

    In a notebook the figure is redrawn at each ``add``; elsewhere nothing is drawn.

    Parameters
    ----------
    xlabel, ylabel : str, optional
    legend : list of str, optional
        A name for each curve.
    xlim, ylim : pair of float, optional
    xscale, yscale : str
        Of Matplotlib: "linear" or "log", say.
    fmts : sequence of str
        Matplotlib's formats, which the curves take in turns.
    nrows, ncols : int
        Of the grid of axes, on whose first one the curves are.
    figsize : pair of float
        Width and height in inches.

    Attributes
    ----------
    X, Y : list of list of float
        The points, one list a curve.
    """

    def __init__(
        self,
        xlabel=None,
        ylabel=None,
        legend=None,
        xlim=None,
        ylim=None,
        xscale="linear",
        yscale="linear",
        fmts=("-", "--", "-.", ":"),
        nrows=1,
        ncols=1,
        figsize=(4.5, 2.8),
    ):
        self.only = None
        if xlim is not None and xlim[0] == xlim[1]:  # a run of one epoch
            self.only, xlim = xlim[0], None
        settings = dict(
            xlabel=xlabel, ylabel=ylabel, xlim=xlim, ylim=ylim, xscale=xscale, yscale=yscale
        )
        self.settings = {key: value for key, value in settings.items() if value is not None}
        self.legend, self.fmts = legend or [], fmts
        self.layout = (nrows, ncols, figsize)
        self.X = []
        self.Y = []
        self.chart = None
        self.handle = None

    def add(self, x, y) -> None:
        """Add a point to each curve.

        Parameters
        ----------
        x, y : float or sequence
            A number for all curves or one for each; None is no point. An array of one number is a
            number. What is not finite is a gap, marked "diverged".

        Raises
        ------
        ValueError
            For sequences that are not equally long.
        """
        ys = numbers(y)
        xs = numbers(x) if is_several(x) else numbers(x) * len(ys)
        while len(self.X) < len(ys):
            self.X.append([])
            self.Y.append([])
        points = []
        for i, (a, b) in enumerate(zip(xs, ys, strict=True)):
            if a is not None and b is not None:
                self.X[i].append(a)
                self.Y[i].append(b)
                points.append((i, a, b))
        report("point", points=points, legend=self.legend, **self.settings)
        if in_notebook():
            self._draw()

    def _draw(self):
        import matplotlib
        from IPython.display import display
        from matplotlib.ticker import MaxNLocator

        from d2lmgpu.figures.chart import STYLE, Chart
        from d2lmgpu.figures.style import number

        with matplotlib.rc_context(STYLE):
            if self.chart is None:
                nrows, ncols, figsize = self.layout
                self.chart = Chart("", *figsize)
                self.axes = self.chart.subplots(nrows, ncols, squeeze=False).flatten()[0]
            self.axes.cla()
            self.chart.readings.clear()
            curves = []
            for name, x, y, fmt in zip(self._names(), self.X, self.Y, cycle(self.fmts)):
                drawn = self.axes.plot(x, gaps(y), fmt, marker="o" if len(x) == 1 else None)
                points = [
                    (a, b, f"{self._xlabel()} {number(a)}", number(b)) for a, b in finite(zip(x, y))
                ]
                self.chart.add_readings(name, drawn, points)
                curves.append((x, y, drawn[0].get_color()))
            self.axes.set(**self.settings | self._not_yet_logarithmic())
            if self.only is not None:  # room for whole numbers on the axis
                self.axes.set_xlim(self.only - 1, self.only + 1)
            if self.settings.get("xlabel") == "epoch":
                self.axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            mark(self.axes, curves)
            if self.legend:
                self.axes.legend(self.legend, frameon=False)
        self.chart.alt = self._last_points()
        if self.handle is None:
            self.handle = display(self.chart, display_id=True)
        else:
            self.handle.update(self.chart)

    def _not_yet_logarithmic(self):
        """The scales of the axes on which nothing has a place above zero."""
        curves = zip(self.X, self.Y)
        drawn = [point for xs, ys in curves for point in finite(zip(xs, ys))]
        return {
            scale: "linear"
            for place, scale in enumerate(("xscale", "yscale"))
            if not any(point[place] > 0 for point in drawn)
        }

    def _last_points(self):
        """The last point of each curve in words."""
        curves = zip(self._names(), self.X, self.Y)
        points = [(name, x[-1], y[-1]) for name, x, y in curves if x]
        return "; ".join(
            f"{name} {f'{y:.3f}' if isfinite(y) else DIVERGED} at {self._xlabel()} {x:g}"
            for name, x, y in points
        )

    def _names(self):
        """What each curve is called."""
        unnamed = [self.settings.get("ylabel", "curve")] * len(self.X)
        return [*self.legend, *unnamed[len(self.legend) :]]

    def _xlabel(self):
        return self.settings.get("xlabel", "x")
