"""Grades a folder of notebooks as Gradescope does: one row each, whatever a notebook does.

    python tools/grade.py AUTOGRADER.zip FOLDER

Writes ``FOLDER/grades/grades.csv``, a row when it is known, and beside it what was said of each
notebook. Two are graded at a time. A cell that does not end is interrupted, so that what stands
behind it counts, and a notebook that takes too long or too much memory for that is ended. Its row
then says so. Whatever a notebook has started, daemons included, ends with it. As root, notebooks
run as another account without network; anybody else's run under the account that calls this: use
an account, a container or a machine that may break. Linux only.
"""

import argparse
import csv
import io
import json
import math
import os
import queue
import re
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path

import course_grading
from confinement import MEMORY, Confinement, NotConfined
from submissions import SIZE, Submission, content, submissions

from d2lmgpu.process.supervisor import remove

AT_A_TIME = 2
CELL_SECONDS = 60
NOTEBOOK_SECONDS = 300  # to run it; and as long to try its answers
KEPT = re.compile("PATH|LANG|LC_.*|OPENBLAS_.*|LD_LIBRARY_PATH")  # of the environment
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet begins one


class NotGraded(Exception):
    """Why a submission gets no points."""


class Grader:
    """Grades submissions by an autograder, a zip as bytes."""

    def __init__(self, autograder: bytes, confinement: Confinement, cell_seconds, seconds):
        self.autograder, self.confinement = autograder, confinement
        self.cell_seconds, self.seconds = cell_seconds, seconds
        with tempfile.TemporaryDirectory() as folder:
            self.asked = course_grading.asked(self.unpack(folder))
        self.slots = queue.SimpleQueue()
        for slot in range(AT_A_TIME):
            self.slots.put(slot)

    def unpack(self, folder) -> Path:
        """The autograder's files, in a new folder below one."""
        source = Path(folder, "source")
        with zipfile.ZipFile(io.BytesIO(self.autograder)) as file:
            file.extractall(source)
        return source

    def row(self, submission: Submission, logs: Path) -> dict:
        """``{"submission", "total", question: points, …, "remark"}``, whatever happens."""
        points, remark, log = {}, submission.remark, []
        slot = self.slots.get()
        try:
            if not remark:
                points, remark = self.grade(submission, slot, log)
        except NotGraded as reason:
            remark = str(reason)
        except Exception as error:  # of one, not of all
            remark = f"not graded: {type(error).__name__}: {error}"
        finally:
            self.slots.put(slot)
        with suppress(OSError):
            path = logs / f"{submission.name[:200]}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [line for line in (remark, *log) if line.strip()]
            path.write_text("\n".join(lines), errors="backslashreplace", encoding="utf-8")
        points = {question.name: points.get(question.name, 0) for question in self.asked}
        remark = " ".join(remark.split())[:1000]
        return {
            "submission": submission.name,
            "total": sum(points.values()),
            **points,
            "remark": remark,
        }

    def grade(self, submission, slot, log) -> tuple:
        """``({question: points}, remark)``. Raises NotGraded with the reason for none."""
        with ExitStack() as over:
            folder = Path(tempfile.mkdtemp())
            over.callback(remove, folder)
            for part in ("submission", "results", "home"):
                (folder / part).mkdir()
            source = self.unpack(folder)
            (folder / "submission_metadata.json").write_text("{}", encoding="utf-8")
            left = SIZE
            for path in submission.files:
                try:
                    data = content(path, left)
                except (ValueError, OSError) as error:
                    raise NotGraded(str(error)) from error
                left -= len(data)
                (folder / "submission" / path.name).write_bytes(data)
            self.confinement.give(folder, slot)
            self.step(source, ["run", folder, self.cell_seconds], folder, slot, log)
            with tempfile.TemporaryDirectory() as other:  # which the notebook could not change
                os.chmod(other, 0o755)
                source = self.unpack(other)
                answer = self.step(source, ["points", folder], folder, slot, log)
        return self.read(json.loads(answer), log)

    def step(self, source, command, folder, slot, log) -> bytes:
        """What a step of the grading has printed. Raises NotGraded if it did not end well."""
        home = str(folder / "home")
        environ = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        environ |= {
            "HOME": home,
            "TMPDIR": home,
            "IPYTHONDIR": home,
            "PYTHONPATH": "",
            "D2LMGPU_PREDICTIONS": f"{home}/predictions",
        }
        if command[0] == "points":  # the package that checks is the autograder's
            environ["PYTHONPATH"] = str(source / "files")
        program = [sys.executable, source / course_grading.SCRIPT, *command]
        ended = self.confinement.run(program, folder / "home", slot, self.seconds, environ)
        log.append(ended.errors)
        if ended.cut == "time":
            raise NotGraded(f"ended after {self.seconds:g} seconds")
        if ended.cut == "memory":
            raise NotGraded(f"ended: it took more than {MEMORY >> 30} GB of memory")
        number = -ended.code if ended.code < 0 else 256 - ended.code  # the keeper's, or its child's
        if number in set(signal.Signals):
            raise NotGraded(f"not graded: {signal.Signals(number).name} ended it")
        if ended.code:
            last = ended.errors.strip().splitlines()[-1:] or [f"exit status {ended.code}"]
            raise NotGraded(f"not graded: {last[0]}")
        return ended.answer

    def read(self, grades, log) -> tuple:
        """The points and the remark that were found; raises NotGraded if they cannot be."""
        points, lines = {}, []
        for question in self.asked:
            grade = grades["questions"][question.name]
            score = points[question.name] = grade["score"]
            number = isinstance(score, (int, float)) and not isinstance(score, bool)
            if not number or not math.isfinite(score) or not 0 <= score <= question.points:
                raise NotGraded(f"not graded: {score!r} points for {question.name}")
            lines += [f"\n{question.name}: {score:g} of {question.points:g}"]
            lines += test_lines(question, grade["tests"])
        log[:0] = lines
        return points, grades["remark"]


def test_lines(question, tests) -> Iterator:
    """What each test of a question found; behind one that was not passed none was tried."""
    for seeds, (passed, words) in zip(question.seeds, tests):
        yield "Hidden cases:" if seeds else "The cases that the notebook shows:"
        yield words
        if not passed:
            return


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("autograder", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cell-seconds", type=float, default=CELL_SECONDS)
    parser.add_argument("--notebook-seconds", type=float, default=NOTEBOOK_SECONDS)
    parser.add_argument("--own-account", action="store_true", help="also as root: no other account")
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    if not options.folder.is_dir():
        sys.exit(f"{options.folder} is no folder: give that of the submissions.")
    confinement = Confinement(options.own_account, options.folder)
    limits = options.cell_seconds, options.notebook_seconds
    try:
        grader = Grader(options.autograder.read_bytes(), confinement, *limits)
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit(f"{options.autograder} is no autograder ({error}): make exercises makes them.")
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as trial:
        handed_in = submissions(options.folder, Path(name), print, left_out=("grades",))
        if not handed_in:
            sys.exit(f"{options.folder} has no notebooks: give the folder of the submissions.")
        try:
            confinement.check(Path(trial))
        except NotConfined as reason:
            sys.exit(str(reason))
        if not confinement.apart:
            print("Notebooks run under this account, and may do whatever it may.")
        write(grader, handed_in, options.folder / "grades")


def write(grader: Grader, handed_in: list[Submission], target: Path) -> None:
    """Grade all of ``handed_in``; each row is written when it is known."""
    target.mkdir(exist_ok=True)
    columns = ["submission", "total", *(question.name for question in grader.asked), "remark"]
    most = sum(question.points for question in grader.asked)
    pool = ThreadPoolExecutor(AT_A_TIME)
    try:
        with (target / "grades.csv").open("w", errors="backslashreplace", newline="") as file:
            table = csv.DictWriter(file, columns)
            table.writeheader()
            file.flush()
            jobs = [pool.submit(grader.row, submission, target) for submission in handed_in]
            for job in as_completed(jobs):
                row = job.result()
                table.writerow(row | {name: plain(row[name]) for name in ("submission", "remark")})
                file.flush()
                print(f"{row['submission']}: {row['total']:g} of {most:g} {row['remark']}")
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
