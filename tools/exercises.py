"""Makes from the exercises' master what learners and instructors get.

    python tools/exercises.py [FOLDER]

The master, ``exercises/write-it.py``, is text in jupytext's format with otter-grader's marks. From
it come the learner's notebook beside it, without the solutions; the page of the book, with hints
and solutions behind a click; and the autograder that Gradescope and ``otter run`` take. FOLDER is
where to write in place of the repository.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import yaml
from notebook import normalise
from otter.assign import main as assign

from d2lmgpu.course import exercises

ROOT = Path(__file__).resolve().parents[1]
MASTER = ROOT / "exercises" / "write-it.py"
NOTEBOOK = Path("exercises", "write-it.ipynb")
AUTOGRADER = Path("exercises", "autograder.zip")
PAGE = Path("chapters", "reference", "exercises.md")
MARK = re.compile(r"^ *# (?:BEGIN|END) SOLUTION\n?", re.M)
INTRODUCTION = """# Exercises That Check Themselves

Ten short functions, one for each idea of the course. Open `exercises/write-it.ipynb` in JupyterLab:
it has the ten questions, and below each of them a cell that tries your function on many cases, in a
process of its own, and says what is right, what is wrong and by how much. NumPy is all that you
need. Here the same questions stand with two hints and a solution each."""


def questions() -> Iterator[tuple[str, str, str]]:
    """The name, the text and the solution of every question."""
    name = text = None
    for cell in jupytext.read(MASTER).cells:
        if cell.cell_type == "raw" and cell.source.startswith("# BEGIN QUESTION"):
            name, text = yaml.safe_load(cell.source)["name"], None
        elif cell.cell_type == "markdown" and name and text is None:
            text = cell.source
        elif cell.cell_type == "code" and MARK.search(cell.source):
            yield name, text, MARK.sub("", cell.source).rstrip()


def page() -> str:
    """The page of the book."""
    parts = [INTRODUCTION]
    for name, text, solution in questions():
        parts += [f"(exercise-{name})=\n{text}"]
        hints = exercises.registry.find(name).hints
        parts += [f"```{{dropdown}} Hint {i}\n{hint}\n```" for i, hint in enumerate(hints, 1)]
        parts += [f"````{{dropdown}} Solution\n```python\n{solution}\n```\n````"]
    return "\n\n".join(parts) + "\n"


def main(target: str | Path = ROOT) -> None:
    """Write everything below ``target``; raises if the solution of a question is not right."""
    target = Path(target)
    (target / PAGE).write_text(page(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        master, made = Path(folder) / NOTEBOOK.name, Path(folder) / "made"
        jupytext.write(jupytext.read(MASTER), master)
        assign(str(master), str(made))
        learners = nbformat.read(made / "student" / NOTEBOOK.name, as_version=4)
        normalise(learners)
        nbformat.write(learners, target / NOTEBOOK)
        (autograder,) = (made / "autograder").glob("*.zip")
        shutil.copy(autograder, target / AUTOGRADER)


if __name__ == "__main__":
    main(*sys.argv[1:])
