"""Makes slides of the chapters as ``jupyter nbconvert --to slides`` does: a file for each.

    python tools/slides.py FOLDER [chapters/….ipynb ...]

A heading begins a slide to the right; text and code follow below it, a slide each. Outputs are
those of the pages, where the book was built before. Unlike the pages, the slides need the internet
while they are shown: nbconvert's template fetches reveal.js, which draws them, and MathJax.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "_build" / "jupyter_execute"  # the chapters with their outputs
DROPPED = {"hosted", "remove-cell", "checked-exercises"}
TERM = re.compile(r"\{(?:term|ref|doc|numref)\}`([^`<]*?)(?:\s*<[^`]*>)?`")
OTHER = re.compile(r"\s*\{\w+\}`[^`]*`")  # citations
LABEL = re.compile(r"^\([\w-]+\)=\n", re.M)


def plain(text: str) -> str:
    """Markdown without the roles and labels that only the book knows."""
    text = TERM.sub(lambda found: found[1].replace("fig-", "the figure "), text)
    return LABEL.sub("", OTHER.sub("", text))


def pieces(cell):
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
    run = RUN / chapter
    notebook = nbformat.read(run if run.exists() else ROOT / chapter, as_version=4)
    page, _ = SlidesExporter(reveal_scroll=True).from_notebook_node(slides(notebook))
    target = folder / f"{'-'.join(name.parts)}.slides.html"
    target.write_text(page, encoding="utf-8")
    return target


def main(folder: str, *chapters: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    every = sorted(path.relative_to(ROOT) for path in (ROOT / "chapters").glob("*/*.ipynb"))
    for chapter in map(Path, chapters) if chapters else every:
        print(make(chapter, target))


if __name__ == "__main__":
    main(*sys.argv[1:])
