"""Makes slides of the chapters as ``jupyter nbconvert --to slides`` does: a file for each.

    python tools/slides.py FOLDER [chapters/….ipynb ...]

A heading begins a slide to the right; text and code follow below it, a slide each. Outputs are
those of the pages, where the book was built before. Unlike the pages, the slides need the internet
while they are shown: nbconvert's template fetches reveal.js, which draws them, and MathJax.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from nbconvert import SlidesExporter

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "_build" / ".jupyter_cache"  # the chapters with their outputs
SIZE = {"reveal_width": "1280", "reveal_height": "720"}  # 89 columns of code
STYLE = """<style>.reveal .jp-Cell pre { font-size: 17px; line-height: 1.35 }
.reveal .jp-InputPrompt, .reveal .jp-OutputPrompt { display: none }
.reveal .jp-OutputArea-output svg, .reveal .jp-OutputArea-output img { max-height: 560px }
</style></head>"""
DROPPED = {"remove-cell", "checked-exercises", "solution"}
LINK = re.compile(r"\[([^][]+)\]\((?!https?:)[^()\s]+\)")


def plain(text: str) -> str:
    """Markdown without the links that lead into the course's folder."""
    return LINK.sub(r"\1", text)


def pieces(cell) -> Iterator:
    """A cell, or one for each section of its text."""
    if cell.cell_type != "markdown":
        yield cell
        return
    for part in re.split(r"^(?=##? )", plain(cell.source), flags=re.M):
        if part.strip():
            yield nbformat.v4.new_markdown_cell(part.strip())


def slides(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with a kind of slide for every cell."""
    kept = [c for c in notebook.cells if not DROPPED & set(c.metadata.get("tags", []))]
    notebook.cells = [piece for cell in kept for piece in pieces(cell)]
    for cell in notebook.cells:
        begins = cell.cell_type == "markdown" and re.match("##? ", cell.source)
        cell.metadata["slideshow"] = {"slide_type": "slide" if begins else "subslide"}
    return notebook


def make(chapter: Path, folder: Path) -> Path:
    """The slides of one chapter, in ``folder``."""
    name = chapter.relative_to("chapters").with_suffix("")
    notebook = nbformat.read(ROOT / chapter, as_version=4)
    if KEPT.exists():
        with contextlib.suppress(KeyError):  # it has not been run since it was changed
            _, notebook = get_cache(KEPT).merge_match_into_notebook(notebook)
    exporter = SlidesExporter(reveal_scroll=True, **SIZE)
    page, _ = exporter.from_notebook_node(slides(notebook))
    target = folder / f"{'-'.join(name.parts)}.slides.html"
    target.write_text(page.replace("</head>", STYLE, 1), encoding="utf-8")
    return target


def main(folder: str, *chapters: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    every = sorted(path.relative_to(ROOT) for path in (ROOT / "chapters").glob("*/*.ipynb"))
    for chapter in map(Path, chapters) if chapters else every:
        print(make(chapter, target))


if __name__ == "__main__":
    main(*sys.argv[1:])
