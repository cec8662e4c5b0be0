"""A class is graded: everybody gets a row, whatever the others' notebooks do."""

import csv
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import psutil
import pytest
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


LEAVES = """\
import subprocess, sys
subprocess.Popen(["sleep", "4321"])
daemon = "import os; os.setsid(); os.fork() or os.execve('/bin/sleep', ['sleep', '4321'], {})"
subprocess.run([sys.executable, "-c", daemon])"""


def left_running():
    """What LEAVES has started and nobody has ended."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "4321"]]


def test_a_class_of_three_is_graded(made, tmp_path):
    submit(tmp_path, "all", SOLUTIONS)
    some = {"combine": SOLUTIONS["combine"], "naive-port": COPIED}
    submit(tmp_path, "endless", some, LEAVES, "while True:\n    pass")
    (tmp_path / "broken.ipynb").write_text('{"cells": ')
    rows = grades(tmp_path, made, "--cell-seconds", "10")
    assert list(rows["all"] | {"total": 0}) == ["total", *sorted(SOLUTIONS), "remark"]
    points = {name: [float(row[one]) for one in SOLUTIONS] for name, row in rows.items()}
    assert points == {"all": [1, 1, 1], "endless": [1, 0, 0], "broken": [0, 0, 0]}
    assert rows["broken"]["remark"] and not rows["endless"]["remark"]
    assert left_running() == []


@pytest.mark.soak
def test_one_that_takes_too_long_is_ended_with_all_that_it_started(made, tmp_path):
    submit(tmp_path, "endless", SOLUTIONS, LEAVES, "while True:\n    pass")
    rows = grades(tmp_path, made, "--notebook-seconds", "12")
    assert rows["endless"]["remark"] == "ended after 12 seconds"
    assert left_running() == []


def test_the_zip_grades_in_gradescope_s_folders_with_the_package_that_it_holds(made, tmp_path):
    """As https://gradescope-autograders.readthedocs.io/en/latest/specs has them."""
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    with zipfile.ZipFile(made / "exercises" / f"{PART}-autograder.zip") as file:
        file.extractall(tmp_path / "source")
    assert {"setup.sh", "run_autograder"} <= {p.name for p in (tmp_path / "source").iterdir()}
    started = (tmp_path / "source" / "run_autograder").read_text()
    assert started.startswith("#!") and "/autograder/source/run_otter.py" in started
    some = {"combine": SOLUTIONS["combine"], "naive-port": COPIED}
    where = "import d2lmgpu\nopen('where', 'w').write(d2lmgpu.__file__)"
    submit(tmp_path / "submission", "learner", some, where)
    run = "import sys; from otter.run.run_autograder import main; main(sys.argv[1])"
    subprocess.run([sys.executable, "-c", run, tmp_path], cwd=tmp_path, check=True)
    assert (tmp_path / "submission/where").read_text().startswith(f"{tmp_path}/submission/")
    public, *questions = json.loads((tmp_path / "results/results.json").read_text())["tests"]
    assert public["visibility"] == "visible" and "score" not in public
    points = {one["name"]: (one["score"], one["max_score"]) for one in questions}
    assert points == {"combine": (1, 1), "replicate": (0, 1), "naive-port": (0, 1)}
    assert all(one["visibility"] == "hidden" and one["output"] for one in questions)
