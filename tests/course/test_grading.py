"""A class is graded: everybody gets a row, whatever the others' notebooks do."""

import csv
import subprocess
import sys
from pathlib import Path

import nbformat
from exercise_parts import PARTS, ROOT, solved

PART = "foundations"
SOLUTIONS = {one.name: one.solution for one in PARTS[PART].questions()}
# Right for the visible cases of one device more, and copied from there.
COPIED = "def port_of_0(k, num_bytes):\n    return {1: 0, 2: 2 * num_bytes}[k]"


def grades(folder, made, *options):
    """{submission: its row}"""
    autograder = made / "exercises" / f"{PART}-autograder.zip"
    command = [sys.executable, "tools/grade.py", autograder, folder, *options]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with (folder / "grades" / "grades.csv").open() as file:
        return {Path(row.pop("submission")).stem: row for row in csv.DictReader(file)}


def submit(folder, name, solutions, *more):
    """A learner's notebook with these solutions, and cells of the learner's own in front."""
    notebook = solved(PART, solutions)
    notebook.cells[1:1] = [nbformat.v4.new_code_cell(source) for source in more]
    nbformat.write(notebook, folder / f"{name}.ipynb")


def test_a_class_of_three_is_graded(made, tmp_path):
    submit(tmp_path, "all", SOLUTIONS)
    some = {"combine": SOLUTIONS["combine"], "naive-port": COPIED}
    submit(tmp_path, "endless", some, "while True:\n    pass")
    (tmp_path / "broken.ipynb").write_text('{"cells": ')
    rows = grades(tmp_path, made, "--cell-seconds", "10")
    assert list(rows["all"] | {"total": 0}) == ["total", *sorted(SOLUTIONS), "remark"]
    points = {name: [float(row[one]) for one in SOLUTIONS] for name, row in rows.items()}
    assert points == {"all": [1, 1, 1], "endless": [1, 0, 0], "broken": [0, 0, 0]}
    assert rows["broken"]["remark"] and not rows["endless"]["remark"]
