"""The exercises as their masters have them, and what a checker says of a function."""

import contextlib
import io
from pathlib import Path

import nbformat
import numpy as np
from programs import program

from d2lmgpu.course.exercises.registry import EXERCISES, Wrong

ROOT = Path(__file__).resolve().parents[2]
PARTS = {part.name: part for part in program("exercise_masters").parts()}
QUESTIONS = {question.name: question for part in PARTS.values() for question in part.questions()}


def answer(code, name):
    """The function that an exercise's code defines."""
    namespace = {"np": np}
    exec(code, namespace)
    return namespace[QUESTIONS[name].function]


def verdict(name, function, seeds=(3, 4)):
    """``(reason, words)`` for which an answer is refused, in this process; None if it is right."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            for seed in seeds:
                for check in EXERCISES[name].checks:
                    check(function, np.random.default_rng(seed))
    except Wrong as wrong:
        return wrong.reason, wrong.text
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def solved(name, solutions):
    """The learner's notebook of the part ``name``, with ``{exercise: code}`` written into it."""
    notebook = nbformat.read(ROOT / "exercises" / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        for test in cell.metadata.get("otter", {}).get("tests", []):
            cell.source = solutions.get(test, cell.source)
    return notebook
