"""The orders of a pipeline as its page defines them, for tests of what is drawn of them."""

import ast
from pathlib import Path

import nbformat

PAGE = Path(__file__).resolve().parents[1] / "chapters/beyond/pipelines.ipynb"


def of_the_page(*names):
    """The functions of these names that cells of the page define."""
    cells = nbformat.read(PAGE, as_version=4).cells
    defined = {
        node.name: node
        for cell in cells
        if cell.cell_type == "code"
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.FunctionDef)
    }
    scope = {}
    exec(ast.unparse(ast.Module([defined[name] for name in names], [])), scope)
    return [scope[name] for name in names]


gpipe, one_f_one_b, interleaved = of_the_page("gpipe", "one_f_one_b", "interleaved")
SCHEDULES = {"GPipe": gpipe, "1F1B": one_f_one_b, "interleaved 1F1B": interleaved}
