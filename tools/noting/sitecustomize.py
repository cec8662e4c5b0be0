"""Notes which files of the course a Python process reads: in each one that a chapter starts.

Python imports a module of this name before all others. ``dependencies.py`` puts this folder onto
the path of a chapter's kernel, from which workers inherit it, and reads what was noted.
"""

import os
import sys
from pathlib import Path

LOG = os.environ.get("D2LMGPU_NOTED")
ROOT = str(Path(__file__).resolve().parents[2])
LISTS = {"os.listdir", "os.scandir"}
WRITES = os.O_WRONLY | os.O_RDWR
seen = set()


def note(event, given):
    if event != "open" and event not in LISTS:
        return
    path = "." if given[0] is None else given[0]
    if isinstance(path, int) or (event == "open" and (given[2] or 0) & WRITES):
        return
    try:
        path = os.path.join(os.getcwd(), os.fsdecode(path))
    except (OSError, TypeError, ValueError):
        return
    if path in seen or not path.startswith(ROOT):
        return
    seen.add(path)
    if not os.path.relpath(path, ROOT).startswith((".", "_build")):
        with open(LOG, "a") as log:
            log.write(f"{path}\n")


if LOG:
    sys.addaudithook(note)
