"""What a learner does with a notebook of exercises, as steps of a test."""

from pages import edit_cell
from servers import SECONDS

CHAPTER = "chapters/foundations/data-parallelism.ipynb"
NOTEBOOK = "exercises/foundations.ipynb"
IMPORTS, ANSWER, CHECK = 1, 4, 5  # cells
SOLUTION = """\
total = sum(mean * size for mean, size in zip(means, sizes) if size)
    return total / sum(sizes)"""


def answer_first(page):
    """Import, check what is there, write the answer, and check it: not yet, then correct."""
    outputs = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output")
    edit_cell(page, IMPORTS, "", "")
    edit_cell(page, ANSWER, "", "")
    edit_cell(page, CHECK, "", "")
    outputs.filter(has_text="combine: not yet.").wait_for(timeout=SECONDS * 1000)
    edit_cell(page, ANSWER, "...", SOLUTION)
    edit_cell(page, CHECK, "", "")
    outputs.filter(has_text="combine: correct.").wait_for(timeout=SECONDS * 1000)
