"""Grades a folder of notebooks with ``otter run``: one row each, whatever a notebook does.

    python tools/grade.py AUTOGRADER.zip FOLDER

Writes ``FOLDER/grades/grades.csv``, and beside it what the grader said of each notebook. Two are
graded at a time. A cell that does not end is interrupted, so that what stands behind it counts, and
a notebook that takes too long for that is ended. Its row then says so. Whatever a notebook has
started, daemons included, ends with it. What learners have written runs under your own account: use
an account, a container or a machine that may break. Linux only.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

# It runs a command, and ends all that this leaves running.
KEEPER = Path(__file__).resolve().parents[1] / "hub" / "keeper.py"
AT_A_TIME = 2
CELL_SECONDS = 60  # two endless functions, checked visibly and hidden, take 40
NOTEBOOK_SECONDS = 300
INTERRUPT = """\
import signal

signal.signal(signal.SIGALRM, signal.default_int_handler)
for event, seconds in (("pre_run_cell", {seconds}), ("post_run_cell", 0)):
    get_ipython().events.register(event, lambda *_, seconds=seconds: signal.alarm(seconds))"""


def questions(autograder: Path) -> list[str]:
    """The names of the questions that an autograder asks for."""
    with zipfile.ZipFile(autograder) as file:
        paths = [Path(name) for name in file.namelist()]
    tests = [path for path in paths if path.parent.name == "tests" and path.suffix == ".py"]
    return sorted(path.stem for path in tests)


def prepared(notebook: Path, folder: Path, cell_seconds: int) -> Path:
    """A copy whose endless cells are interrupted; raises for what is no notebook."""
    content = nbformat.read(notebook, as_version=4)
    cell = nbformat.v4.new_code_cell(INTERRUPT.format(seconds=cell_seconds))
    content.cells.insert(0, cell)
    copy = folder / "submission.ipynb"
    nbformat.write(content, copy)
    return copy


def grade(notebook: Path, autograder: Path, log: Path, cell_seconds: int, seconds: int) -> dict:
    """``{question: points, "remark": what was wrong with the notebook itself}``"""
    # What a notebook has started may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            copy = prepared(notebook, folder, cell_seconds)
        except Exception as error:  # whatever nbformat makes of a file that is none
            return {"remark": f"not a notebook: {type(error).__name__}"}
        command = [sys.executable, KEEPER, sys.executable, "-m", "otter", "run", "--no-logo",
                   "-a", autograder.resolve(), "-o", name, copy]  # fmt: skip
        own = {"TMPDIR": name, "IPYTHONDIR": name, "D2LMGPU_PREDICTIONS": f"{name}/predictions"}
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=os.environ | own,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
                return {"remark": f"ended after {seconds} seconds"}
        results = folder / "results.json"
        if not results.exists():
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            return {"remark": f"not graded: {''.join(last)}"}
        tests = json.loads(results.read_text(encoding="utf-8"))["tests"]
        return {test["name"]: test["score"] for test in tests if "score" in test}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("autograder", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cell-seconds", type=int, default=CELL_SECONDS)
    parser.add_argument("--notebook-seconds", type=int, default=NOTEBOOK_SECONDS)
    options = parser.parse_args()
    asked, notebooks = questions(options.autograder), sorted(options.folder.glob("*.ipynb"))
    if not notebooks:
        sys.exit(f"{options.folder} has no notebooks: give the folder of the submissions.")
    target = options.folder / "grades"
    target.mkdir(exist_ok=True)

    def row(notebook):
        log = target / f"{notebook.stem}.txt"
        limits = options.cell_seconds, options.notebook_seconds
        found = grade(notebook, options.autograder, log, *limits)
        points = {name: found.get(name, 0) for name in asked}
        remark = found.get("remark", "")
        return {"submission": notebook.name, "total": sum(points.values()), **points,
                "remark": remark}  # fmt: skip

    columns = ["submission", "total", *asked, "remark"]
    with ThreadPoolExecutor(AT_A_TIME) as pool, (target / "grades.csv").open("w") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        for one in pool.map(row, notebooks):
            table.writerow(one)
            file.flush()
            print(f"{one['submission']}: {one['total']:g} of {len(asked)} {one['remark']}")


if __name__ == "__main__":
    main()
