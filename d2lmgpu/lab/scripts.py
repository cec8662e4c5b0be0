"""The lab's scripts and styles: one module for a widget, one file after the other for a page."""

from functools import cache

from d2lmgpu.figures.site import PACKAGE

FOLDER = PACKAGE / "lab" / "web"
STYLES = ("uPlot.min.css", "lab.css")
SCRIPTS = (
    "uPlot.iife.min.js", "words.js", "choice.js", "number.js", "controls.js", "chart.js", "svg.js",
    "curves.js", "speedup.js", "runs.js", "lanes.js", "where.js", "table.js", "save.js", "lab.js",
)  # fmt: skip
PAGE = "page.js"  # after the others, in a page that has no kernel
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
    return "\n".join([*(FOLDER.joinpath(name).read_text() for name in SCRIPTS), RENDER])


@cache
def styles() -> str:
    """The styles as one text."""
    return "\n".join(FOLDER.joinpath(name).read_text() for name in STYLES)


def inlined_names(*names) -> list[str]:
    """Names of files as ``figures.site.inlined`` wants them."""
    return [f"lab/web/{name}" for name in names]
