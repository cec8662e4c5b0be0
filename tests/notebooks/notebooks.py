"""The course's chapters, and the little that all tests of them need to read in a notebook."""

import ast
from pathlib import Path

import nbformat
from notebook_code import python_of

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(
    path for path in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
NAMES = [path.relative_to(ROOT).as_posix() for path in CHAPTERS]


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def tree(cell):
    """The syntax tree of a code cell, its IPython magics left out."""
    return ast.parse(python_of(cell.source))


def sections(notebook):
    """``[(title, cells)]`` for every ``##`` heading; what precedes the first has the title ''.

    A heading starts its section wherever in a Markdown cell it stands.
    """
    parts = [("", [])]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for title in headings(cell.source):
                parts.append((title, []))
        parts[-1][1].append(cell)
    return parts


def headings(source):
    """The titles of the ``##`` headings in Markdown text; fenced blocks have none."""
    titles, fence = [], None
    for line in source.splitlines():
        mark = line.lstrip()[:3]
        if fence is None and mark in ("```", "~~~", ":::"):
            fence = mark
        elif fence is not None and mark == fence:
            fence = None
        elif fence is None and line.startswith("## "):
            titles.append(line[3:].strip())
    return titles


def text_of(output):
    """The text in a stored output that nbval compares."""
    if output.output_type == "stream":
        return output.text.strip()
    if output.output_type == "error":
        return output.ename
    return output.get("data", {}).get("text/plain", "").strip()
