"""What a notebook answers, and how many points that is worth: on Gradescope and by ``make grade``.

An answer is a function that one of the learner's cells hands to ``exercises.check``, wherever the
cell stands; also what the function asked for is after the cell that was given for it, and at the
end of the notebook. While the notebook runs they are only collected, in a folder. When its kernel
has ended, each is tried in a process of its own with the package that lies beside this file: what
a cell makes of the checker, the tests or the package counts for nothing.

This file lies in an autograder's zip. There it is otter-grader's plugin ``Graded``.
``tools/grade.py`` calls it as a program, first to run a notebook, then for the points:

    python course_grading.py run FOLDER CELL_SECONDS
    python course_grading.py points FOLDER

FOLDER has what Gradescope's ``/autograder`` has: ``submission``, ``source``, ``results``.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
import runpy
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
SCRIPT = Path(__file__).name
CELL_SECONDS = 60
MEMORY = 2 << 30  # bytes that a notebook's kernel may take
OUTPUT = 10 << 20  # bytes that all cells together may put out; nobody reads it
KEPT = 5  # different answers to a question, the last ones, are tried
ANSWER_SIZE = 64 << 20  # bytes, with all that the function uses
QUESTION_SECONDS = 45  # two answers that never return
TEST = re.compile(r"exercises\.check\('([\w-]+)', (\w+)(?:, seeds=range\((\d+), (\d+)\))?\)")
SHOWN_RIGHT = re.compile(r"^([\w-]+): correct\.$", re.MULTILINE)
FIRST = """\
import sys
sys.path.append({source!r})
import course_grading
course_grading.collect({answers!r}, {seconds!r})"""
LAST = """\
import sys
sys.path.append({source!r})
import course_grading
course_grading.collect_named(globals())"""


@dataclass(frozen=True)
class Asked:
    """A question: the function's name, its points, and the seeds of each of its tests."""

    name: str
    function: str
    points: float
    seeds: list  # None: those that the learner's own check has


def asked(source: Path = SOURCE) -> list[Asked]:
    """All questions of an autograder's folder, in the order of its columns."""
    questions = []
    for path in sorted((source / "tests").glob("*.py")):
        test = runpy.run_path(str(path))["test"]
        cases = [TEST.search(case["code"]) for case in test["suites"][0]["cases"]]
        seeds = [list(range(int(case[3]), int(case[4]))) if case[3] else None for case in cases]
        questions.append(Asked(cases[0][1], cases[0][2], test["points"], seeds))
    return questions


class Collecting:
    """otter's plugin: the notebook is run so that its answers are collected."""

    def __init__(self, submission_path, submission_metadata, config):
        self.folder = Path(submission_path).resolve().parent.parent
        self.seconds = config.get("cell_seconds", CELL_SECONDS)

    def before_execution(self, notebook) -> dict:
        """The notebook with a cell in front and one at the end; no cell of it is left out."""
        import nbformat

        package = self.folder / "submission" / "d2lmgpu"
        if package.is_dir() and not package.is_symlink():
            shutil.rmtree(package)  # it may have been handed in
        else:
            package.unlink(missing_ok=True)
        shutil.copytree(SOURCE / "files" / "d2lmgpu", package)
        answers = self.folder / "answers"
        answers.mkdir()
        note(answers, "shown.json", shown_right(notebook))
        note(answers, "unparsed.json", unparsed(notebook))
        for cell in notebook.cells:
            tags = cell.metadata.get("tags", [])
            cell.metadata["tags"] = [tag for tag in tags if tag != "otter_ignore"]
            cell.metadata.get("otter", {}).pop("ignore", None)
        values = {"source": str(SOURCE), "answers": str(answers), "seconds": self.seconds}
        notebook.cells.insert(0, nbformat.v4.new_code_cell(FIRST.format(**values)))
        notebook.cells.append(nbformat.v4.new_code_cell(LAST.format(**values)))
        return notebook


class Graded(Collecting):
    """The same, and the points of what was collected."""

    def after_grading(self, results) -> None:
        """In place of what the notebook's kernel says of itself."""
        from otter.nbmeta_config import NBMetadataConfig
        from otter.test_files import GradingResults, create_test_file
        from otter.test_files.abstract_test import TestCaseResult

        grades, tests = graded(self.folder), []
        for name, grade in grades["questions"].items():
            test = create_test_file(str(SOURCE / "tests" / f"{name}.py"), NBMetadataConfig())
            for case, (passed, words) in zip(test.test_cases, grade["tests"], strict=True):
                test.test_case_results.append(TestCaseResult(case, words, passed))
            test.update_score(grade["score"])  # otter would give half of it for one of two tests
            tests.append(test)
        GradingResults.__init__(results, tests, results.notebook)
        results.set_output(grades["remark"])


def shown_right(notebook) -> list[str]:
    """The questions of which the notebook, as it was handed in, shows that they are correct."""
    names = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            texts = [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
            for text in texts:
                names.update(SHOWN_RIGHT.findall(text if isinstance(text, str) else ""))
    return sorted(names)


def unparsed(notebook) -> list[str]:
    """What is wrong with each cell that is no Python; its number is that of a run from the top."""
    from IPython.core.inputtransformer2 import TransformerManager

    faults = []
    sources = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    for number, source in enumerate(sources, 1):
        try:
            code = TransformerManager().transform_cell(source)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(code, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except Exception as error:  # whatever a parser makes of what a learner has written
            line = f", in `{error.text.strip()}`" if getattr(error, "text", None) else ""
            what = getattr(error, "msg", "") or f"{type(error).__name__}: {error}"
            faults.append(f"cell {number} does not parse ({what}{line}).")
    return faults


def note(answers, name, value) -> None:
    """Keep ``value`` in a file beside the answers."""
    Path(answers, name).write_text(json.dumps(value), encoding="utf-8")


# In the notebook's kernel.

_collector = None


def collect(answers, seconds) -> None:
    """Collect what is handed to ``exercises.check``; bound time, memory and output of the cells."""
    from d2lmgpu.course import exercises
    from d2lmgpu.course.exercises.worker import limit_memory

    global _collector
    shell, errors = get_ipython(), []  # noqa: F821
    _collector = Collector(Path(answers))
    exercises.check = exercises.checking.check = _collector.check
    limit_memory(MEMORY)
    signal.signal(signal.SIGALRM, signal.default_int_handler)

    def ended(result):
        signal.setitimer(signal.ITIMER_REAL, 0)
        error = result.error_in_exec or result.error_before_exec
        if error is not None and len(errors) < 3:
            errors.append(f"{type(error).__name__}: {error}"[:300])
            note(answers, "errors.json", errors)

    def begins(_):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    shell.events.register("pre_run_cell", begins)
    shell.events.register("post_run_cell", ended)
    shell.ask_exit = lambda: None  # a cell that says exit() ends here
    bound_output(shell.kernel.session)


def bound_output(session) -> None:
    """Send no more than ``OUTPUT`` bytes of what cells put out to the process that runs them."""
    stream, left = type(sys.stdout), OUTPUT
    write, send = stream.write, session.send

    def room(size):
        nonlocal left
        left -= size
        return left > 0

    def bounded_write(self, text):
        return write(self, text) if room(len(text)) else len(text)

    def bounded_send(socket, message, content=None, *arguments, **options):
        is_message = isinstance(message, dict)
        kind = message["header"]["msg_type"] if is_message else message
        put_out = kind in ("display_data", "update_display_data", "execute_result", "error")
        if put_out and not room(len(str(message if is_message else content))):
            return None
        return send(socket, message, content, *arguments, **options)

    stream.write, session.send = bounded_write, bounded_send


class Collector:
    """Writes answers to a folder: ``QUESTION/NUMBER``, those that cannot be sent as ``.txt``."""

    def __init__(self, folder):
        self.folder = folder
        self.number = 0
        self.seen = {}

    def check(self, name, answer, *_, **__) -> object:
        """In place of ``exercises.check``: the answer is kept, and tried later."""
        from d2lmgpu.course.exercises.checking import Verdict, sendable
        from d2lmgpu.course.exercises.registry import ExerciseError

        try:
            call, suffix = sendable(name, answer), ""
            if len(call) > ANSWER_SIZE:
                raise TypeError(f"it is larger than {ANSWER_SIZE >> 20} MB, with what it uses")
        except ExerciseError:
            raise
        except Exception as error:
            call, suffix = f"It cannot be tried: {error}".encode()[:1000], ".txt"
        self.keep(name, call, suffix)
        return Verdict(name, ())

    def keep(self, name, call, suffix) -> None:
        folder, digest = self.folder / name, hashlib.sha256(call).digest()
        folder.mkdir(exist_ok=True)
        self.number += 1
        path = folder / f"{self.number:08}{suffix}"
        if old := self.seen.get(digest):
            with contextlib.suppress(FileNotFoundError):
                old.unlink()
        path.write_bytes(call)
        self.seen[digest] = path
        for older in sorted(folder.iterdir())[:-KEPT]:
            older.unlink()


def collect_named(names) -> None:
    """At the end of the notebook: the functions under the names that were asked for."""
    for question in asked():
        if callable(names.get(question.function)):
            _collector.check(question.name, names[question.function])


# After its end.


def run(folder, seconds) -> None:
    """Run the notebook in ``folder`` as Gradescope does, and collect its answers."""
    from otter.run.run_autograder import main

    plugin = {"course_grading.Collecting": {"cell_seconds": float(seconds)}}
    main(str(folder), plugins=[plugin], logo=False, print_summary=False)


def graded(folder: Path) -> dict:
    """The ``points`` of what was collected in ``folder``, in a process that has run none of it."""
    place = Path(folder, "checking")
    place.mkdir(exist_ok=True)
    environ = os.environ | {"PYTHONPATH": str(SOURCE / "files")}
    command = [sys.executable, __file__, "points", str(Path(folder).resolve())]
    done = subprocess.run(command, cwd=place, env=environ, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def points(folder: Path) -> dict:
    """``{"questions": {name: {"score", "tests": [[passed?, words], ...]}}, "remark": words}``"""
    sys.path.append(str(folder / "submission"))  # modules that were handed in
    answers, remarks, questions = folder / "answers", [], {}
    names = ("shown", "errors", "unparsed")
    shown, errors, broken = (noted(answers / f"{name}.json") for name in names)
    for question in asked():
        tests = best(question, answers / question.name)
        score = question.points if all(passed for passed, _ in tests) else 0
        questions[question.name] = {"score": score, "tests": tests}
        if not score:
            remarks.append(f"{question.name}: {why(question.name in shown, tests, errors)}")
    if remarks:
        remarks[:0] = broken
    return {"questions": questions, "remark": " ".join(remarks)}


def read(path, most) -> bytes:
    """The bytes of a regular file of at most ``most``; b"" for anything else."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size <= most:
            return path.read_bytes()
    return b""


def noted(path) -> list:
    """A list that was noted; an empty one where none is to be read."""
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(read(path, 1 << 20))
        if isinstance(value, list):
            return [str(entry)[:300] for entry in value[:100]]
    return []


def best(question: Asked, folder: Path) -> list:
    """``[passed?, words]`` a test, of the answer that passes all; else of the last answer."""
    from d2lmgpu.course.exercises.checking import SECONDS, SEEDS, tried

    last, end = None, time.monotonic() + QUESTION_SECONDS
    for path in sorted(folder.glob("*"), reverse=True):
        tests = []
        for seeds in question.seeds:
            seconds = min(SECONDS, end - time.monotonic())
            if path.suffix == ".txt":
                tests.append([False, read(path, 1000).decode(errors="replace")])
            elif seconds <= 0:
                tests.append([False, "Other answers to this question took all its time."])
            elif tests and not tests[-1][0]:
                tests.append([False, tests[-1][1]])
            else:
                verdict = tried(question.name, read(path, ANSWER_SIZE), seeds or SEEDS, seconds)
                tests.append([bool(verdict), str(verdict)])
        if all(passed for passed, _ in tests):
            return tests
        last = last or tests
    nothing = f"The notebook has no function {question.function}, and checks no other."
    return last or [[False, nothing]] * len(question.seeds)


def why(was_right, tests, errors) -> str:
    """Why there is no point: the first thing that was wrong, and where the learner's own check
    did not find it."""
    message = next(words for passed, words in tests if not passed)
    first = next((line for line in message.splitlines() if not line.startswith("✓")), message)
    if tests[0][0]:
        return f"right for the cases that the notebook shows, not for others ({first})."
    if was_right:
        cells = f" The first cell that failed: {errors[0]}." if errors else ""
        return f"correct in the notebook, but not if it is run from the top ({first}).{cells}"
    return first


def main(task, folder, *arguments) -> None:
    if task == "run":
        run(folder, *arguments)
    else:
        print(json.dumps(points(Path(folder).resolve())))


if __name__ == "__main__":
    main(*sys.argv[1:])
