"""What every chapter keeps to. Each function returns the faults of one notebook, in words."""

import ast
import re
from functools import cache

from notebooks import ROOT, code_cells, sections, tags, text_of, tree
from programs import program

CHECK, IGNORE, KEEP = "nbval-check-output", "nbval-ignore-output", "keep_output"
CLOSING = ["Summary", "Exercises"]
LONGEST, FOLDED = 92, 88  # characters of code that a page shows without cutting them
citations = program("citations")
MARKUP = re.compile(r"(?<!`)\{[\w:-]+\}`[^`]*`|^\(.+\)=$|^:::+.*|^```+\{.*|<span data-.*", re.M)


def tag_faults(notebook):
    """Each code cell is either checked (and its output kept) or not."""
    faults = []
    for cell in code_cells(notebook):
        labels = tags(cell)
        if len(labels & {CHECK, IGNORE}) != 1:
            faults.append(f"needs exactly one of {CHECK}, {IGNORE}: {first_line(cell)}")
        elif (CHECK in labels) != (KEEP in labels):
            faults.append(f"{KEEP} goes with {CHECK}: {first_line(cell)}")
    return faults


def output_faults(notebook):
    """Checked cells have a stored output that nbval compares; other cells have none.

    nbval compares text only, and it passes a cell without an output or a count unchecked.
    """
    faults = []
    for cell in code_cells(notebook):
        if CHECK not in tags(cell):
            if cell.outputs:
                faults.append(f"stored output of an unchecked cell: {first_line(cell)}")
        elif not any(text_of(output) for output in cell.outputs):
            faults.append(f"checked cell without a stored text output: {first_line(cell)}")
        elif cell.execution_count is None:
            faults.append(f"checked cell without an execution count: {first_line(cell)}")
    return faults


def count_faults(notebook):
    """The cells were run once each, top to bottom."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    expected = list(range(1, len(counts) + 1))
    return [] if counts == expected else [f"not run top to bottom: execution counts {counts}"]


def width_faults(notebook):
    """No line of code is longer than a page is wide."""
    return [
        f"{len(line)} characters: {line}"
        for cell in code_cells(notebook)
        for line in cell.source.splitlines()
        if len(line) > (FOLDED if "hide-input" in tags(cell) else LONGEST)
    ]


def checked_faults(notebook):
    """A chapter has checked cells."""
    return [] if any(CHECK in tags(c) for c in code_cells(notebook)) else ["no checked cell"]


def section_faults(notebook):
    """Every section claims something, with ``assert``.

    Summary and Exercises need not, nor the first section if it has no code at all.
    """
    faults = []
    for number, (title, cells) in enumerate(sections(notebook)[1:]):
        code = [cell for cell in cells if cell.cell_type == "code"]
        opening = number == 0 and not code
        if title not in CLOSING and not opening and not any(asserts(tree(cell)) for cell in code):
            faults.append(f"section without an assert: {title}")
    return faults


def solution_faults(notebook):
    """Below each exercise that the package does not check a folded cell asserts its answer.

    A solution prints nothing, for what it prints is not folded.
    """
    exercises, faults = dict(sections(notebook)).get("Exercises", []), []
    for cell, below in zip(exercises, [*exercises[1:], None]):
        if cell.cell_type == "code":
            if "solution" not in tags(cell):
                faults.append(f"code among the exercises that is no solution: {first_line(cell)}")
            continue
        _, _, exercise = f"\n{cell.source}".rpartition("\n## Exercises")
        number = len(re.findall(r"^(?:\d+\.|[-*]) ", exercise, re.M))
        if "checked-exercises" in tags(cell) or not number:
            continue
        if number > 1 or below is None or not is_solution(below):
            faults.append(f"exercise without a folded solution below it: {exercise.strip()}")
    return faults


def is_solution(cell):
    """Whether a cell asserts something, silently, and is folded in the book and in JupyterLab."""
    folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    return (
        cell.cell_type == "code"
        and {"solution", "hide-input", IGNORE} <= tags(cell)
        and folded
        and asserts(tree(cell))
        and not re.search(r"^print\(", cell.source, re.M)
    )


def asserts(module):
    """Whether a cell asserts something when it runs: not in a function, and not of a constant."""
    pending = list(module.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)
    return False


def text_faults(notebook):
    """A chapter opens with what the reader will be able to do, and closes with a summary and
    exercises. (The time it takes is among its facts, see ``test_facts.py``.)"""
    markdown = markdown_of(notebook)
    opening = re.split(r"^## ", "\n\n".join(markdown), maxsplit=1, flags=re.MULTILINE)[0]
    titles = [title for title, _ in sections(notebook)]
    faults = []
    if not re.match(r"# \S", opening):
        faults.append("does not start with a title")
    if not re.search(r"\b[Yy]ou\s+(can|will\s+be\s+able\s+to)\b", opening):
        faults.append("the opening does not say what the reader will be able to do")
    if titles[-2:] != CLOSING:
        faults.append(f"does not end with the sections {' and '.join(CLOSING)}")
    return faults


def markup_faults(notebook):
    """What only the book would understand; sources and terms that are not there."""
    faults = []
    for text in markdown_of(notebook):
        faults += [f"markup that a notebook shows: {markup}" for markup in MARKUP.findall(text)]
        for words, address in re.findall(citations.LINK, text):
            key, named = citations.sources(ROOT).get(address, (None, words))
            if words not in (named, re.sub(r", (.*)$", r" (\1)", named)):
                faults.append(f"{key} is cited as {words}, not as {named}")
        for term in re.findall(r"glossary\.md#([^)]*)", text):
            if term not in glossary():
                faults.append(f"no term of the glossary: {term}")
    return faults


def framework_faults(notebook):
    """One framework a notebook: with both imported, torch falls to one thread.

    What a function imports does not count: it is for a process of its own.
    """
    imported = frameworks(notebook)
    return [f"imports both frameworks: {sorted(imported)}"] if len(imported) > 1 else []


def frameworks(notebook):
    """The frameworks that a notebook imports, itself or as a backend: 'torch', 'mxnet'."""
    names = set()
    for cell in code_cells(notebook):
        pending = list(tree(cell).body)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif not isinstance(node, ast.FunctionDef):
                pending += ast.iter_child_nodes(node)
    parts = {part for name in names for part in name.split(".")[:2]}
    return parts & {"torch", "mxnet"}


@cache
def glossary():
    """The terms, as links name them."""
    text = (ROOT / "chapters/reference/glossary.md").read_text()
    return {term.lower().replace(" ", "-") for term in re.findall(r"^## (.*)$", text, re.M)}


def markdown_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def first_line(cell):
    return cell.source.splitlines()[0] if cell.source.strip() else "(empty cell)"
