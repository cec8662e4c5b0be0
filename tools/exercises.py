"""Makes from the exercises' masters what learners and instructors get.

    python tools/exercises.py [FOLDER]

A master, ``exercises/PART.py``, is text in jupytext's format (see exercise_masters.py). From it
come the learner's notebook beside it, without the solutions, and the autograder that Gradescope and
``otter run`` take; from all of them one page of the book, with hints and solutions behind a
click, and the lists at the end of the chapters. FOLDER is where to write in place of the
repository.
"""

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
from chapter import normalise
from exercise_masters import MASTERS, ROOT, Part, parts, slug
from otter.assign import main as assign

from d2lmgpu.course.exercises.registry import find

PAGE = Path("chapters", "reference", "exercises.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "fashion_mnist_subset.*")  # of the autograder
GRADING = Path(__file__).with_name("course_grading.py")  # the plugin that otter needs
TAG = "checked-exercises"  # of the lists in the chapters
INTRODUCTION = """# Exercises That Check Themselves

{number} short functions: to write yourself, with a bug to find, or with a number to predict. Each
part has a notebook. Below each question there is a cell that tries your function on many cases, in
a process of its own, and says what is right, what is wrong and by how much. NumPy is all that you
need, whichever framework you came by, and PyTorch where a question says that your function runs in
processes.

In a copy of the course, `make lab` opens JupyterLab, and the notebooks are in `exercises/`. Here
the same questions stand with two hints and a solution each. Whoever teaches finds
{{ref}}`how to grade a class <grading>`."""


def page(all_parts: list[Part]) -> str:
    """The page of the book."""
    number = sum(1 for part in all_parts for _ in part.questions())
    blocks = [INTRODUCTION.format(number=number)]
    for part in all_parts:
        notebook = f"exercises/{part.name}.ipynb"
        blocks += [f"(exercises-{part.name})=\n## {part.title}"]
        blocks += [f"{{download}}`Download {notebook} <../../{notebook}>`{{launch}}`{notebook}`."]
        for chapter in part.chapters:
            blocks += [f"### {chapter.title}"]
            links = ", ".join(f"{{doc}}`../{name}`" for name in chapter.pages)
            blocks += [f"The chapter: {links}."]
            for question in chapter.questions:
                target = f"(exercise-{slug(question.title)})="
                blocks += [f"{target}\n#### {question.heading}", question.text]
                if question.given:
                    blocks += [f"```python\n{question.given}\n```"]
                hints = enumerate(find(question.name).hints, 1)
                blocks += [f"```{{dropdown}} Hint {i}\n{hint}\n```" for i, hint in hints]
                code = f"```python\n{question.solution}\n```"
                blocks += [f"````{{dropdown}} Solution\n{code}\n````"]
    return "\n\n".join(blocks) + "\n"


def lists(all_parts: list[Part]) -> dict[str, str]:
    """{chapter: the list of its checked exercises}"""
    by_page = {}
    for part in all_parts:
        for chapter in part.chapters:
            notebook = f"../../exercises/{part.name}.ipynb"
            lines = [
                f"- [{q.heading}]({notebook}#{q.heading.replace(' ', '-')}) ({q.kind})"
                for q in chapter.questions
            ]
            text = f"These [check themselves]({notebook}), with hints and solutions."
            for name in chapter.pages:
                by_page[name] = "\n".join(["### Checked Exercises\n", text, "", *lines])
    return by_page


def put(text: str, source: Path, target: Path) -> None:
    """The chapter ``source`` with its list behind its exercises, written to ``target``."""
    notebook = nbformat.read(source, as_version=4)
    cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    notebook.cells = [*cells, nbformat.v4.new_markdown_cell(text, metadata={"tags": [TAG]})]
    normalise(notebook)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def make(part: Part, target: Path) -> None:
    """The learner's notebook and the autograder of one part, in the folder ``target``."""
    with tempfile.TemporaryDirectory() as folder:
        master, made = Path(folder, f"{part.name}.ipynb"), Path(folder, "made")
        nbformat.write(part.for_otter(), master)
        shutil.copytree(ROOT / "d2lmgpu", Path(folder, "d2lmgpu"), ignore=LEFT_OUT)
        assign(str(master), str(made), no_run_tests=True)
        learners = nbformat.read(made / "student" / master.name, as_version=4)
        normalise(learners)
        nbformat.write(learners, target / master.name)
        (autograder,) = (made / "autograder").glob("*.zip")
        with zipfile.ZipFile(autograder, "a") as file:
            file.write(GRADING, GRADING.name)
        shutil.copy(autograder, target / f"{part.name}-autograder.zip")


def main(target: str | Path = ROOT) -> None:
    """Write everything below ``target``."""
    target, every = Path(target), parts()
    for folder in (PAGE.parent, MASTERS):
        (target / folder).mkdir(parents=True, exist_ok=True)
    (target / PAGE).write_text(page(every), encoding="utf-8")
    for name, text in lists(every).items():
        chapter = Path("chapters", f"{name}.ipynb")
        put(text, ROOT / chapter, target / chapter)
    for part in every:
        make(part, target / MASTERS)


if __name__ == "__main__":
    main(*sys.argv[1:])
