"""Reads the masters of the exercises: ``exercises/PART.py``, in jupytext's percent format.

    # %% [markdown] exercise="stale"        the question, under a heading of its own
    # %% given="stale"                      code with a bug, refused for this reason; or none
    # %%                                    the solution

``kind="predict"`` beside ``exercise`` asks for a number. A heading with ``pages=[…]`` begins a
chapter. All other cells are handed on as they stand.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
import yaml
from chapter_facts import FactsError, chapters
from docutils.nodes import make_id
from nbformat import NotebookNode, v4

ROOT = Path(__file__).resolve().parents[1]
MASTERS = Path("exercises")
ASSIGNMENT = {
    "init_cell": False,
    "export_cell": False,
    "solutions_pdf": False,
    "template_pdf": False,
    "generate": {"show_hidden": False},
    # Gradescope's machine: this Python and the course's package itself; see also NEEDED.
    "python_version": "3.11",
    "autograder_files": ["d2lmgpu"],
    "plugins": ["course_grading.Graded"],
}
NEEDED = ["numpy", "cloudpickle"]  # what a checker imports
# The newest PyTorch for CPUs alone: "+cpu" counts as newer than the one with gigabytes of CUDA.
PYTORCH = ["--extra-index-url https://download.pytorch.org/whl/cpu", "torch"]
HIDDEN_SEEDS = "range(100, 106)"
INTRODUCTION = """# Exercises: {title}

Write each function, or mend it, and run the cell below: it tries your function on many cases, in a
process of its own, and says what is right, what is wrong and by how much. NumPy is all that you
need{but}.
Run the next cell first. Stuck? `exercises.hint("{name}")` gives a hint, and a second one; so it
does with the other names. The solutions are on the course's page *Exercises That Check
Themselves*."""
BUT = ", and PyTorch where a question says that your function runs in processes"
IMPORTS = "import numpy as np\n\nfrom d2lmgpu.course import exercises"
HAND_IN = """## Hand In

Save this notebook: it is what is graded. The next cell writes the table of *all* your predictions
in this course, with their errors, to the file `my-predictions.csv` beside it."""
TABLE = 'from d2lmgpu.predictions import predictions\n\npredictions().save("my-predictions.csv")'


@dataclass
class Question:
    """One exercise; ``given`` is code with a bug, for which ``reason`` is what is told of it."""

    name: str
    kind: str
    title: str
    text: str
    given: str = ""
    reason: str = ""
    solution: str = ""
    number: int = 0  # in the course

    @property
    def heading(self) -> str:
        return f"{self.number}. {self.title}"

    @property
    def function(self) -> str:
        """The name of the function that is asked for."""
        return re.match(r"def (\w+)", self.solution)[1]

    def for_otter(self) -> Iterator[NotebookNode]:
        """The question's cells with otter's marks, and the one in which a learner checks."""
        start = self.given or self.solution.splitlines()[0] + "\n    ..."
        verdict = f'exercises.check("{self.name}", {self.function}'
        yield raw("BEGIN QUESTION", name=self.name, points=1, check_cell=False)
        yield v4.new_markdown_cell(f"### {self.heading}\n\n{self.text}")
        yield raw("BEGIN SOLUTION")
        yield v4.new_code_cell(
            f"# BEGIN SOLUTION NO PROMPT\n{self.solution}\n# END SOLUTION\n"
            f'""" # BEGIN PROMPT\n{start}\n""" # END PROMPT'
        )
        yield from (raw("END SOLUTION"), raw("BEGIN TESTS"))
        yield v4.new_code_cell(f"verdict = {verdict})\nassert verdict, verdict")
        hidden = f"verdict = {verdict}, seeds={HIDDEN_SEEDS})\nassert verdict, verdict"
        yield v4.new_code_cell(f"# HIDDEN\n{hidden}")
        yield from (raw("END TESTS"), raw("END QUESTION"))
        yield ungraded(f"{verdict})")


@dataclass
class Chapter:
    """The exercises of one or two pages of the course, and what stands between them."""

    title: str
    pages: list[str]
    cells: list = field(default_factory=list)  # Questions, and cells

    @property
    def questions(self) -> list[Question]:
        return [cell for cell in self.cells if isinstance(cell, Question)]


@dataclass
class Part:
    """One master."""

    name: str
    title: str
    chapters: list[Chapter] = field(default_factory=list)

    def questions(self) -> Iterator[Question]:
        for chapter in self.chapters:
            yield from chapter.questions

    def runs_processes(self) -> bool:
        """Whether an answer runs in processes of PyTorch's."""
        return any(
            "from torch import distributed" in question.solution for question in self.questions()
        )

    def for_otter(self) -> NotebookNode:
        """The notebook from which otter-grader makes the learner's and the autograder."""
        first = next(self.questions()).name
        processes = self.runs_processes()
        requirements = NEEDED + PYTORCH * processes
        about = INTRODUCTION.format(title=self.title, name=first, but=BUT * processes)
        cells = [
            raw("ASSIGNMENT CONFIG", **ASSIGNMENT, requirements=requirements),
            v4.new_markdown_cell(about),
            v4.new_code_cell(IMPORTS),
        ]
        for chapter in self.chapters:
            cells.append(v4.new_markdown_cell(f"## {chapter.title}"))
            for cell in chapter.cells:
                cells += cell.for_otter() if isinstance(cell, Question) else [cell]
        cells += [v4.new_markdown_cell(HAND_IN), ungraded(TABLE)]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def raw(mark: str, **settings) -> NotebookNode:
    """A cell in which otter is told something."""
    return v4.new_raw_cell(f"# {mark}\n" + (yaml.safe_dump(settings) if settings else ""))


def ungraded(source: str) -> NotebookNode:
    """A cell of code that a grader need not run."""
    return v4.new_code_cell(source, metadata={"tags": ["otter_ignore"]})


def slug(title: str) -> str:
    """A title as the end of a link."""
    return make_id(title)


def read(name: str) -> Part:
    """The master ``name``; its exercises have no numbers yet."""
    part = question = None
    for cell in jupytext.read(ROOT / MASTERS / f"{name}.py").cells:
        about, source = cell.metadata, cell.source
        if part is None:
            part = Part(name, source.removeprefix("# "))
        elif "pages" in about:
            part.chapters.append(Chapter(source.removeprefix("## "), about["pages"]))
        elif "exercise" in about:
            title, text = source.removeprefix("### ").split("\n", 1)
            kind = "predict a number" if about.get("kind") == "predict" else "write it"
            question = Question(about["exercise"], kind, title, text.strip())
            part.chapters[-1].cells.append(question)
        elif "given" in about:
            question.kind = "find the bug"
            question.given = source
            question.reason = about["given"]
        elif cell.cell_type == "code" and question and not question.solution:
            question.solution = source
        else:
            other = ungraded(source) if cell.cell_type == "code" else v4.new_markdown_cell(source)
            part.chapters[-1].cells.append(other)
    return part


def place(part: Part, order: list[str]) -> int:
    """Where the course has the first chapter of a master; FactsError if a chapter is not in it."""
    for name in (name for chapter in part.chapters for name in chapter.pages):
        if name not in order:
            raise FactsError(f"{MASTERS / part.name}.py: there is no chapter {name} in _toc.yml")
    return order.index(part.chapters[0].pages[0])


def parts() -> list[Part]:
    """All masters, in the order of the course; the exercises are numbered through."""
    order = list(chapters(ROOT))
    masters = [read(path.stem) for path in (ROOT / MASTERS).glob("*.py")]
    masters.sort(key=lambda part: place(part, order))
    questions = (question for part in masters for question in part.questions())
    for number, question in enumerate(questions, 1):
        question.number = number
        question.text = f"*{question.kind.capitalize()}.* {question.text}"
    return masters
