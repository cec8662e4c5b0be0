"""Thirty notebooks are graded: ``pytest -s tests/course/class_of_thirty.py`` says in what time.

Twenty learners solve one to three questions, the others hand in what breaks, ends or never ends.
"""

import time

import nbformat
from test_grading import COPIED, SOLUTIONS, grades, submit

NAMES = list(SOLUTIONS)
MINUTES = 10
ENDLESS_FUNCTION = "def combine(means, sizes):\n    while True:\n        pass"
HUGE = "def combine(means, sizes):\n    return np.ones(10**11)"


def hand_in(folder):
    """Thirty submissions; {name: points that it has to get, question by question}"""
    expected = {}
    for number in range(20):
        some = NAMES[: number % 3 + 1]
        submit(folder, f"learner-{number}", {name: SOLUTIONS[name] for name in some})
        expected[f"learner-{number}"] = [int(name in some) for name in NAMES]
    submit(folder, "copied", {"naive-port": COPIED})
    submit(folder, "endless-cell", SOLUTIONS, "while True:\n    pass")
    submit(folder, "endless-function", SOLUTIONS | {"combine": ENDLESS_FUNCTION})
    submit(folder, "huge", SOLUTIONS | {"combine": HUGE})
    submit(folder, "raises", SOLUTIONS, "1 / 0")
    submit(folder, "leaves", SOLUTIONS, "import os\nos._exit(1)")
    submit(folder, "no-syntax", SOLUTIONS | {"combine": "def combine(means, sizes:"})
    expected |= {
        "copied": [0, 0, 0], "endless-cell": [1, 1, 1], "endless-function": [0, 1, 1],
        "huge": [0, 1, 1], "raises": [1, 1, 1], "leaves": [0, 0, 0], "no-syntax": [0, 1, 1],
    }  # fmt: skip
    nbformat.write(nbformat.v4.new_notebook(), folder / "no-cells.ipynb")
    (folder / "empty.ipynb").touch()
    (folder / "broken.ipynb").write_text('{"cells": ')
    return expected | {name: [0, 0, 0] for name in ("no-cells", "empty", "broken")}


def test_everybody_gets_a_row(made, tmp_path):
    expected = hand_in(tmp_path)
    assert len(expected) == 30
    begin = time.monotonic()
    rows = grades(tmp_path, made)
    minutes = (time.monotonic() - begin) / 60
    points = {name: [float(row[one]) for one in NAMES] for name, row in rows.items()}
    assert points == expected
    print(f"\n30 notebooks in {minutes:.1f} minutes")
    assert minutes <= MINUTES
