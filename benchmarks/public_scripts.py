"""Training scripts of others, and what ``d2lmgpu check`` says of them.

    pip install --target EXTRA tqdm==4.70.1
    PYTHONPATH=EXTRA python -m benchmarks.public_scripts CLONES [NAME ...]

Some of the scripts show their progress by tqdm, which this project does not need. CLONES is a
folder of clones, ``OWNER+NAME`` each, that nobody needs to keep; NAME chooses repositories. The
rows of ``public_scripts.csv`` say which script of which commit, the arguments it is given, and what
is right to say of it, as we read its code:

    same                 it trains as one device does
    different DEFECT     it does not, and why: a name of ``check.words.MENDS``
    not compared         it cannot be known here; ``known`` says why

What a script would download are random images of the same size (``in_place_of_downloads``). What
was said goes to records/, for the page *Your Own Script*.
"""

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from d2lmgpu.records import store

PATH = Path(store.FOLDER) / "public-scripts.json"
IMAGES = Path(__file__).parent / "in_place_of_downloads"
ANSWERED = ("outcome", "defect", "where", "reason")
LONGEST = 600  # seconds: check ends each of its runs before that by itself


def rows() -> list[dict]:
    with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_right(row) -> bool:
    """Whether what was said of a script is what is right to say of it."""
    return row["right"] in (row["outcome"], f"{row['outcome']} {row['defect']}")


def kind(row) -> str:
    """Right, no answer where there is one, or which wrong one: what a reader would be told."""
    if is_right(row):
        return "right"
    if row["outcome"] == "not compared":
        return "no answer"
    if row["outcome"] == "same":
        return "false all-clear"
    return "another defect" if row["right"].startswith("different") else "false accusation"


def with_answer(row, clones) -> dict:
    """The row with what ``check`` says of its script, in a copy of its folder, in seconds."""
    clone = Path(clones, row["repository"].replace("/", "+"))
    top = row["path"].rpartition("/")[0].partition("/")[0] or "."  # not all of a large one

    def git(*command):
        command = ["git", "-C", clone, *command]
        return subprocess.run(command, check=True, capture_output=True).stdout

    listed = git("ls-tree", "-rlz", row["commit"], "--", top).decode().split("\0")
    entries = (entry.partition("\t") for entry in listed)
    lacking = [path for facts, _, path in entries if facts.endswith(" BAD")]  # no data in the clone
    without = [f":(exclude,literal){path}" for path in lacking]
    with tempfile.TemporaryDirectory() as folder:
        archive = git("archive", row["commit"], "--", top, *without)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder)
        script = Path(folder, row["path"])
        start = time.perf_counter()
        command = ["-m", "d2lmgpu", "check", "--json", "--", script.name]
        path = [str(IMAGES), folder, os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, *command, *row["arguments"].split()],
            cwd=script.parent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
        seconds = time.perf_counter() - start
    answer = json.loads(done.stdout)
    return row | {name: answer[name] for name in ANSWERED} | {"seconds": round(seconds, 1)}


def main(clones, *repositories) -> int:
    """The record of all rows, those of ``repositories`` made anew; how many answers are wrong."""
    before = json.loads(PATH.read_text(encoding="utf-8"))["rows"] if PATH.exists() else []
    known = {(row["repository"], row["path"]): row for row in before}
    answered = []
    for row in rows():
        kept = known.get((row["repository"], row["path"]))
        if kept and repositories and row["repository"] not in repositories:
            answered.append(kept | row)
            continue
        answered.append(with_answer(row, clones))
        columns = ("repository", "path", "seconds", *ANSWERED)
        print(*(answered[-1][name] for name in columns), sep="  ")
    answered = [row | {"kind": kind(row)} for row in answered]
    record = store.provenance("python -m benchmarks.public_scripts CLONES") | {"rows": answered}
    store.save(PATH, record)
    wrong = [row for row in answered if row["kind"].startswith(("false", "another"))]
    print(sum(map(is_right, answered)), "of", len(answered), "right;", len(wrong), "wrong")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
