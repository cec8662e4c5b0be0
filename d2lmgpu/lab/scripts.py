"""The lab's scripts and styles: one module for a widget, one file after the other for a page."""

from d2lmgpu import predictions
from d2lmgpu.figures.site import PACKAGE, joined, widget

FOLDER = PACKAGE / "lab" / "web"
STYLES = ("uPlot.min.css", "lab.css")
SCRIPTS = (
    "uPlot.iife.min.js",
    "words.js",
    "theme.js",
    "line.js",
    "choice.js",
    "number.js",
    "controls.js",
    "chart.js",
    "svg.js",
    "curves.js",
    "speedup.js",
    "runs.js",
    "lanes.js",
    "where.js",
    "table.js",
    "save.js",
    "lab.js",
)
OF_PAGE = (*SCRIPTS, "page.js")  # in a page that has no kernel
# In the book: a loader gets them, and uPlot from where the pages that train have it.
IN_BOOK = ("vendor/uPlot.min.css", f"vendor/{SCRIPTS[0]}", *OF_PAGE[1:])


def module() -> str:
    """The scripts as one ES module, which shows a widget as a lab."""
    return widget("Lab", predictions.SCRIPT, *in_package(*SCRIPTS))


def styles() -> str:
    """The styles as one text."""
    return joined(*in_package(*STYLES), predictions.STYLE)


def in_package(*names) -> list[str]:
    """The files of these names, as ``figures.site`` wants them."""
    return [f"lab/web/{name}" for name in names]
