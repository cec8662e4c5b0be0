"""A learner's notebooks, and their grades by ``make grade`` and in Gradescope's folders."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import numpy as np
from exercise_parts import PARTS, ROOT, solved
from programs import program

from d2lmgpu.course.exercises.checking import SEEDS

PART = "foundations"
# Root has other accounts to give; both ways are tried.
ACCOUNTS = [[], ["--own-account"]] if os.geteuid() == 0 else [[]]
# Otter takes whoever connects to its port for its notebook, and never ends where that is another
# test's client, whose kernel had that port before. On Gradescope nobody else is there, nor here;
# and what a submission leaves running ends with the runner, as there with its container.
CONFINED = [*program("confinement").NAMESPACES, sys.executable, ROOT / "tools" / "confinement.py"]
QUESTIONS = ("combine", "replicate", "naive-port")  # that the tests answer, whatever else it asks
SOLUTIONS = {question.name: question.solution for question in PARTS[PART].questions()}


def visible():
    """``{arguments: value}`` of the cases in which the learner's own check tries port_of_0."""
    num_bytes = {}
    for generator in map(np.random.default_rng, SEEDS):
        for k in (1, 2, 3, 8, 64):
            size = 8 * int(generator.integers(1, 999))
            num_bytes[k, size] = 2 * (k - 1) * size
    return num_bytes


COPIED = f"def port_of_0(k, num_bytes):\n    return {visible()!r}[k, num_bytes]"
# How long what a submission leaves would last: by it these tests find theirs, and none of others'.
LASTS = 1_000_000 + os.getpid()
LEAVES = f"""\
import subprocess, sys
subprocess.Popen(["sleep", "{LASTS}"])
daemon = "import os; os.setsid(); os.fork() or os.execve('/bin/sleep', ['sleep', '{LASTS}'], {{}})"
subprocess.run([sys.executable, "-c", daemon])"""


def grade_program():
    """``tools/grade.py`` as a module, with those beside it that it imports."""
    for name in ("course_grading", "confinement", "submissions"):
        sys.modules.setdefault(name, program(name))
    return program("grade")


def autograder(made):
    """The zip of the part, in the folder that ``make exercises`` wrote."""
    return made / "exercises" / f"{PART}-autograder.zip"


def code(source):
    """A new cell."""
    return nbformat.v4.new_code_cell(source)


def graded(folder, made, *options):
    """Grade the folder as ``make grade`` does; what was printed."""
    command = [sys.executable, "tools/grade.py", autograder(made), folder, *options]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def rows(folder):
    """{submission: its row} of a folder's grades so far."""
    with (folder / "grades" / "grades.csv").open() as file:
        return {row.pop("submission"): row for row in csv.DictReader(file)}


def grades(folder, made, *options):
    """The ``rows`` after grading."""
    graded(folder, made, *options)
    return rows(folder)


def points(row):
    """A row's points of ``QUESTIONS``."""
    return [float(row[name]) for name in QUESTIONS]


def submit(folder, name, solutions, *more):
    """A learner's notebook with these solutions, and cells of the learner's own in front."""
    notebook = solved(PART, solutions)
    notebook.cells[1:1] = [code(source) for source in more]
    nbformat.write(notebook, folder / f"{name}.ipynb")


def gradescope(files, made, folder, cell_seconds=60):
    """What the zip's runner writes for uploaded ``files``: its results; None if it fails.

    Its folders are those of https://gradescope-autograders.readthedocs.io/en/latest/specs.
    """
    for name in ("source", "submission", "results"):
        (folder / name).mkdir(parents=True)
    (folder / "submission_metadata.json").write_text("{}")
    with zipfile.ZipFile(autograder(made)) as file:
        file.extractall(folder / "source")
    settings = folder / "source" / "otter_config.json"
    plugin = {"course_grading.Graded": {"cell_seconds": cell_seconds}}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"plugins": [plugin]}))
    for file in files:
        copy = shutil.copytree if file.is_dir() else shutil.copy
        copy(file, folder / "submission" / file.name)
    runner = folder / "source" / "run_otter.py"
    text = runner.read_text()
    assert text.count('"/autograder"') == 1
    runner.write_text(text.replace('"/autograder"', repr(str(folder))))
    own = {"D2LMGPU_PREDICTIONS": str(folder / "predictions"), "TMPDIR": str(folder)}
    alone = [*CONFINED, tempfile.mkdtemp(dir=folder)] if os.geteuid() == 0 else []
    command = [*alone, sys.executable, runner]
    with (folder / "log").open("w") as log:
        subprocess.run(command, cwd=folder, env=os.environ | own, stdout=log, stderr=log)
    results = folder / "results" / "results.json"
    return json.loads(results.read_text()) if results.exists() else None


def gradescope_points(results):
    """The same of these results; none where there are none."""
    points_of = {
        test["name"]: test["score"]
        for test in (results or {"tests": []})["tests"]
        if "score" in test
    }
    return [points_of.get(name, 0) for name in QUESTIONS]


def files_of(submission: Path):
    """What a learner uploads: a file, or all files of a folder."""
    return sorted(submission.iterdir()) if submission.is_dir() else [submission]
