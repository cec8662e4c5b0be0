"""The lab's scripts and styles: one module for a widget, one file after the other for a page."""

from functools import cache

from d2lmgpu.figures.site import PACKAGE

FOLDER = PACKAGE / "lab" / "web"
STYLES = ("uPlot.min.css", "lab.css")
PREDICTION = ("prediction.js", "prediction.css")  # which the book has of its own
SCRIPTS = (
    "uPlot.iife.min.js", "words.js", "theme.js", "choice.js", "number.js", "controls.js",
    "chart.js", "svg.js", "curves.js", "speedup.js", "runs.js", "lanes.js", "where.js",
    "table.js", "save.js", "lab.js",
)  # fmt: skip
OF_PAGE = (*SCRIPTS, "page.js")  # in a page that has no kernel
# In the book: a loader gets them, and uPlot from where the pages that train have it.
IN_BOOK = ("vendor/uPlot.min.css", f"vendor/{SCRIPTS[0]}", *OF_PAGE[1:])
RENDER = """
export default {
  render({ model, el }) {
    const lab = new Lab(el, model);
    return () => lab.end();
  },
};
"""


@cache
def module() -> str:
    """The scripts as one ES module, which shows a widget as a lab."""
    return "\n".join(
        [*(FOLDER.joinpath(name).read_text() for name in (PREDICTION[0], *SCRIPTS)), RENDER]
    )


@cache
def styles() -> str:
    """The styles as one text."""
    return "\n".join(_read(*STYLES, PREDICTION[1]))


def _read(*names):
    return [FOLDER.joinpath(name).read_text() for name in names]


def in_package(*names) -> list[str]:
    """The files of these names, as ``figures.site.inlined`` wants them."""
    return [f"lab/web/{name}" for name in names]
