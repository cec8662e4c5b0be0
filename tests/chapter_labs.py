"""The chapters that have a lab."""

import json
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
THE_LAB = "TrainingLab("


def cells(chapter):
    """The chapter's code cells."""
    notebook = json.loads((CHAPTERS / f"{chapter}.ipynb").read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


LABS = [
    chapter
    for path in sorted(CHAPTERS.glob("*/*.ipynb"))
    for chapter in [f"{path.parent.name}/{path.stem}"]
    if any(THE_LAB in "".join(cell["source"]) for cell in cells(chapter))
]
