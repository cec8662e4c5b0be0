"""Every solution is right, every planted wrong answer is refused for its reason."""

import csv
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from array_answers import WRONG_ARRAYS
from exercise_answers import WRONG
from exercise_parts import PARTS, QUESTIONS, ROOT, answer, solved, verdict
from process_answers import RIGHT_TOO, WRONG_PROCESSES
from soaking import sample

from d2lmgpu.course import exercises
from d2lmgpu.course.exercises import processes
from d2lmgpu.course.exercises.registry import EXERCISES, ExerciseError
from d2lmgpu.predictions import store

FOLDER = Path(__file__).parent


def planted():
    """(exercise, reason, function): answers, common slips, and the code with a bug."""
    for name, question in QUESTIONS.items():
        for function, reason in (WRONG | WRONG_ARRAYS | WRONG_PROCESSES).get(name, {}).items():
            yield name, reason, function
        for reason, function in EXERCISES[name].slips.items():
            yield name, reason, function
        if question.given:
            yield name, question.reason, answer(question.given, name)


PLANTED = list(planted())


def test_every_exercise_has_a_question_wrong_answers_and_two_hints():
    assert set(QUESTIONS) == set(exercises.names())
    assert all(len(exercise.hints) == 2 for exercise in EXERCISES.values())
    for name in QUESTIONS:
        reasons = [reason for of, reason, _ in PLANTED if of == name]
        assert len(reasons) >= 2, name


def test_every_chapter_has_three_and_one_to_write():
    chapters = [chapter for part in PARTS.values() for chapter in part.chapters]
    for chapter in chapters:
        kinds = [question.kind for question in chapter.questions]
        assert len(kinds) >= 3 and "write it" in kinds, chapter.title
    assert sorted(PARTS) == sorted(path.stem for path in (ROOT / "exercises").glob("*.py"))
    pages = sorted(page for chapter in chapters for page in chapter.pages)
    folder = ROOT / "chapters"
    assert pages == sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.ipynb")
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_solution_is_right(name, monkeypatch):
    launches, real = [], processes.launch
    monkeypatch.setattr(processes, "launch", lambda *a, **k: launches.append(a) or real(*a, **k))
    solution = answer(QUESTIONS[name].solution, name)
    assert verdict(name, solution, seeds=(0, 1, 2)) is None
    if not launches:  # each takes a second of both cores
        assert verdict(name, solution, seeds=(7, *range(100, 106))) is None


@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name in RIGHT_TOO for variant in RIGHT_TOO[name]]
)
def test_another_right_way_is_right(name, variant):
    assert verdict(name, variant) is None


def test_who_hangs_is_ended_and_told_which_ranks_call_what():
    question = QUESTIONS["one-order"]
    verdict = exercises.check("one-order", answer(question.given, "one-order"))
    assert verdict.reason == "deadlock"
    words = "number 1 is all_reduce [] on rank 0 (line 5 of end_of_epoch)"
    assert words in str(verdict) and "broadcast [] on ranks 1 and 2" in str(verdict)


def test_the_page_s_own_function_answers_its_exercise():
    """Overlap defines `total` as the exercise `look-ahead` asks for it, with the same `ahead`."""
    cells = nbformat.read(ROOT / "chapters/scaling/overlap.ipynb", as_version=4).cells
    (cell,) = (cell.source for cell in cells if "def total(" in cell.source)
    scope = {}
    exec(cell[: cell.index("\n\n\nfor ")], scope)  # the definitions, not what they are used for
    assert verdict("look-ahead", scope["total"]) is None


@pytest.mark.parametrize(("name", "reason", "wrong"), PLANTED)
def test_a_wrong_answer_is_refused_for_its_reason_and_not_told_the_answer(name, reason, wrong):
    verdict_reason, text = verdict(name, wrong)
    assert verdict_reason == reason, text
    solution = QUESTIONS[name].solution
    assert not any(line.strip() in text for line in solution.splitlines() if len(line) > 12)
    for value in right_values(name, wrong, answer(solution, name)):
        assert f"{value:.4g}" not in text


def right_values(name, wrong, solution):
    """The right numbers, of four digits, for the cases in which a wrong number was given."""
    taken = []

    def both(*case):
        mistaken, right = wrong(*case), solution(*case)
        taken.append((mistaken, right))
        return mistaken

    if not EXERCISES[name].slips:
        return []
    verdict(name, both)
    return [
        right
        for mistaken, right in taken
        if np.ndim(right) == 0 and len(f"{right:.4g}") >= 5 and not np.isclose(mistaken, right)
    ]


def test_mutants_of_the_solutions_are_refused():
    command = [sys.executable, FOLDER / "exercise_mutants.py", "--sample", "60"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 60 mutants are refused" in done.stdout


def test_a_right_answer_is_told_what_is_right():
    verdict = exercises.check("split", answer(QUESTIONS["split"].solution, "split"))
    assert verdict and verdict.reason == ""
    assert [right for right, _ in verdict.results] == [True] * len(EXERCISES["split"].checks)


FLOODS = {
    "lines": "while True: print('debug ' * 100_000)",
    "one line, to stderr": "import os\n    while True: os.write(2, b'x' * 65536)",
    "from a child": "import subprocess\n    subprocess.run(['sh', '-c', 'yes & yes 1>&2'])",
}
MEASURED = """\
import resource
from d2lmgpu.course import exercises

def loud(n, weights):
    {loud}

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = most()
verdict = exercises.check("split", loud, seconds=10)
print(verdict.reason, len(verdict.printed), most() - before)
"""


class TestWhatAnAnswerMayDo:
    """In a process of its own."""

    def verdict(self, function, **options):
        return exercises.check("split", function, **options)

    def test_never_returns(self):
        def for_ever(n, weights):
            while True:
                pass

        assert self.verdict(for_ever, seconds=3).reason == "time"

    @pytest.mark.parametrize("loud", sample(1, FLOODS.values()), ids=FLOODS)
    def test_prints_without_end(self, loud):
        """The kernel keeps a little of it, and the time limit holds."""
        done = subprocess.run(
            [sys.executable, "-c", MEASURED.format(loud=loud)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        reason, printed, grown = done.stdout.split()
        assert reason == "time" and 0 < int(printed) < 5_000 and int(grown) < 50 << 20

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

    def test_raises_where_a_formula_is_asked_for(self):
        verdict = exercises.check("late", lambda k, p, delay: 1 / 0)
        assert verdict.reason == "raised" and "course/exercises/" not in verdict.printed

    @pytest.mark.parametrize(
        ("value", "why"),
        [(None, "none"), ("abc", "type"), ([1] * 9, "shape"), ([float("nan")] * 7, "shape")],
    )
    def test_returns_something_else(self, value, why):
        reason, _ = verdict("split", lambda n, weights: value)
        assert reason == why

    def test_returns_numbers_that_are_none(self):
        assert verdict("split", lambda n, weights: [float("nan") for _ in weights])[0] == "finite"


@pytest.mark.parametrize(("name", "function"), [("no such", len), (3, len), ("split", None)])
def test_what_is_no_exercise_and_no_answer_is_refused(name, function):
    with pytest.raises(ExerciseError):
        exercises.check(name, function)


def test_hints_come_one_after_the_other(capsys):
    first, second = EXERCISES["ring"].hints
    for expected in (first, second, first):
        exercises.hint("ring")
        assert expected in capsys.readouterr().out


def test_page_chapters_and_notebooks_are_made_from_the_masters(made):
    files = [path.relative_to(made) for path in made.rglob("*") if path.is_file()]
    kept = [file for file in files if file.suffix != ".zip"]
    assert len(files) - len(kept) == len(PARTS)
    for file in kept:
        assert (made / file).read_bytes() == (ROOT / file).read_bytes(), "run: make exercises"


@pytest.mark.parametrize("part", PARTS)
def test_an_autograder_s_machine_has_what_the_answers_import(part, made):
    """Gradescope installs what the zip names, and nothing else."""
    with zipfile.ZipFile(made / "exercises" / f"{part}-autograder.zip") as file:
        environment = yaml.safe_load(file.read("environment.yml"))
    (packages,) = (
        dependency["pip"]
        for dependency in environment["dependencies"]
        if isinstance(dependency, dict)
    )
    code = "\n".join(question.solution for question in PARTS[part].questions())
    imported = set(re.findall(r"^ +(?:import|from) (\w+)", code, re.MULTILINE))
    needed = {"numpy", "cloudpickle"} | imported - sys.stdlib_module_names
    assert needed <= set(packages)


@pytest.mark.parametrize("part", PARTS)
def test_the_learner_s_notebook_has_no_solution(part):
    starts = {}
    for cell in solved(part, {}).cells:
        for name in cell.metadata.get("otter", {}).get("tests", []):
            starts[name] = cell.source
    assert list(starts) == [question.name for question in PARTS[part].questions()]
    for name, source in starts.items():
        question = QUESTIONS[name]
        first = question.solution.splitlines()[0]
        assert source == (question.given or f"{first}\n    ..."), name


@pytest.mark.parametrize("part", PARTS)
def test_a_solved_notebook_runs_through_and_hands_in_its_predictions(part, tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMGPU_PREDICTIONS", str(tmp_path / "predictions"))
    monkeypatch.setattr(exercises, "check", lambda name, function: True)
    monkeypatch.chdir(tmp_path)
    solutions = {question.name: question.solution for question in PARTS[part].questions()}
    cells = [cell.source for cell in solved(part, solutions).cells if cell.cell_type == "code"]
    asked = re.findall(r'Prediction\("([^"]+)"', "\n".join(cells))
    for name in asked:
        store.lock(name, 1)
    shown, namespace = [], {}
    namespace["display"] = shown.append
    for source in cells:
        exec(source, namespace)
    with (tmp_path / "my-predictions.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(asked)
    assert all(float(row["error"]) != 0 and row["source"] for row in rows.values())
