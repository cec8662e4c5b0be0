"""Every solution is right, every planted wrong answer is refused for its reason."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from exercise_answers import TOO_NARROW, WRONG

from d2lmgpu.course import exercises
from d2lmgpu.course.exercises.registry import EXERCISES, ExerciseError, Wrong

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "notebooks"))
from operators import mutants  # noqa: E402

MASTER = (ROOT / "exercises" / "write-it.py").read_text()
QUESTION = r"# name: (\S+)\n.*?# BEGIN SOLUTION\n\n# %%\n(.*?)\n\n# %%"
SOLUTIONS = dict(re.findall(QUESTION, MASTER, re.S))
MADE = ["chapters/reference/exercises.md", "exercises/write-it.ipynb"]


def answer(code):
    """The function that a solution defines."""
    namespace = {"np": np}
    exec(code, namespace)
    return namespace[code.split("(")[0].removeprefix("def ").strip()]


def reason(name, function, seeds=(3, 4)):
    """Why an answer is refused, in this process; None if it is right."""
    try:
        for seed in seeds:
            for check in EXERCISES[name].checks:
                check(function, np.random.default_rng(seed))
    except Wrong as wrong:
        return wrong.reason
    except Exception as error:
        return type(error).__name__
    return None


def test_every_exercise_has_a_question_wrong_answers_and_two_hints():
    assert set(SOLUTIONS) == set(WRONG) == set(exercises.names())
    assert all(len(one.hints) == 2 for one in EXERCISES.values())
    assert all(len(wrong) >= 3 for wrong in WRONG.values())


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_solution_is_right(name):
    verdict = exercises.check(name, answer(SOLUTIONS[name]), seeds=(7, 8))
    assert verdict and len(verdict.said) == len(EXERCISES[name].checks)


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, all_wrong in WRONG.items() for wrong in all_wrong]
)
def test_a_wrong_answer_is_refused_for_its_reason(name, wrong):
    assert reason(name, wrong) == WRONG[name][wrong]


def test_mutants_of_the_solutions_are_refused():
    made = [(name, one) for name, code in SOLUTIONS.items() for one in mutants(code)]
    assert len(made) > 50
    alive = [f"{name}: {one.change}" for name, one in made if not refused(name, one.source)]
    assert len(alive) <= 0.05 * len(made), "\n".join(alive)


def refused(name, code):
    with contextlib.redirect_stderr(io.StringIO()):
        return reason(name, answer(code)) is not None


class TestWhatAnAnswerMayDo:
    """In a process of its own."""

    def verdict(self, function, **options):
        return exercises.check("split", function, **options)

    def test_never_returns(self):
        def for_ever(n, weights):
            while True:
                pass

        assert self.verdict(for_ever, seconds=3).reason == "time"

    def test_ends_python(self):
        assert self.verdict(lambda n, weights: sys.exit()).reason == "ended"
        verdict = self.verdict(lambda n, weights: os._exit(3))
        assert verdict.reason == "ended" and "3" in str(verdict)

    def test_wants_all_memory(self):
        assert self.verdict(lambda n, weights: np.ones(10**10)).reason == "memory"

    def test_raises_and_prints(self):
        def loud(n, weights):
            print("n is", n)
            raise KeyError("weights")

        verdict = self.verdict(loud)
        assert verdict.reason == "raised" and "KeyError" in str(verdict)
        assert "n is 0" in verdict.printed and "in loud" in verdict.printed
        assert "course/exercises/" not in verdict.printed, "only the reader's own lines"

    @pytest.mark.parametrize(
        ("value", "why"),
        [(None, "none"), ("abc", "type"), ([1] * 9, "shape"), ([float("nan")] * 7, "shape")],
    )
    def test_returns_something_else(self, value, why):
        assert self.verdict(lambda n, weights: value).reason == why

    def test_returns_numbers_that_are_none(self):
        assert self.verdict(lambda n, weights: [float("nan") for _ in weights]).reason == "finite"


@pytest.mark.parametrize(("name", "function"), [("no such", len), (3, len), ("split", None)])
def test_what_is_no_exercise_and_no_answer_is_refused(name, function):
    with pytest.raises(ExerciseError):
        exercises.check(name, function)


def test_hints_come_one_after_the_other(capsys):
    first, second = EXERCISES["ring"].hints
    for expected in (first, second, first):
        exercises.hint("ring")
        assert expected in capsys.readouterr().out


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What `make exercises` writes."""
    folder = tmp_path_factory.mktemp("made")
    for file in MADE:
        (folder / file).parent.mkdir(parents=True)
    subprocess.run([sys.executable, "tools/exercises.py", folder], cwd=ROOT, check=True)
    return folder


def test_page_and_notebook_are_made_from_the_master(made):
    for file in MADE:
        assert (made / file).read_bytes() == (ROOT / file).read_bytes(), "run: make exercises"


def test_the_learner_s_notebook_has_no_solution():
    text = (ROOT / "exercises/write-it.ipynb").read_text()
    for name, code in SOLUTIONS.items():
        assert json.dumps(code.splitlines()[-2].strip())[1:-1] not in text, name


def test_a_class_is_graded(made, tmp_path):
    """One with all solutions, one with a single one, which was copied for a single shape."""
    grades = []
    for submission in (SOLUTIONS, {"ring-time": TOO_NARROW}):
        notebook = nbformat.read(ROOT / "exercises/write-it.ipynb", as_version=4)
        for cell in notebook.cells:
            for name in cell.metadata.get("otter", {}).get("tests", []):
                cell.source = submission.get(name, cell.source)
        file = tmp_path / "submission.ipynb"
        nbformat.write(notebook, file)
        command = ["otter", "run", "--no-logo", "-a", made / "exercises/autograder.zip", file]
        subprocess.run([sys.executable, "-m", *command, "-o", tmp_path], check=True)
        tests = json.loads((tmp_path / "results.json").read_text())["tests"]
        grades.append({test["name"]: test.get("score") for test in tests})
    assert all(grades[0][name] == 1 for name in SOLUTIONS)
    assert all(not grades[1][name] for name in SOLUTIONS)
