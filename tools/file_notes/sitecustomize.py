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
IMPORTS = "<frozen importlib._bootstrap_external>"  # it lists each folder of the import path
seen = set()


def note(event, given) -> None:
    if event == "open":
        path, mode, flags = given
        # What os.open is given may be relative to another folder than the process's.
        if (flags or 0) & WRITES or not (mode or str(path).startswith("/")):
            return
    elif event in LISTS and sys._getframe(1).f_code.co_filename != IMPORTS:
        path = "." if given[0] is None else given[0]
    else:
        return
    if isinstance(path, int):
        return
    try:
        path = os.path.join(os.getcwd(), os.fsdecode(path))
    except (OSError, TypeError, ValueError):
        return
    if path in seen or not path.startswith(ROOT):
        return
    seen.add(path)
    if not os.path.relpath(path, ROOT).startswith((".", "_build")):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{path}\n")


if LOG:
    sys.addaudithook(note)
