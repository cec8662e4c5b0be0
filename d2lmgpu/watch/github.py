"""Annotations at the lines of a script: workflow commands, which GitHub reads from what is printed.

Source: docs.github.com, "Workflow commands for GitHub Actions", and the escapes of its toolkit.
"""

import os
from pathlib import Path


def annotation(level, title, message, script, where=None) -> str:
    """One workflow command, as a line.

    where: "file:line" seen from the folder of ``script``; None for the script as a whole. The file
    is named as seen from ``GITHUB_WORKSPACE``, or from the current folder without it.
    """
    file, _, line = where.rpartition(":") if where else (Path(script).name, "", "")
    path = Path(script).resolve().parent / file
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    place = {"file": os.path.relpath(path, root)} | ({"line": line} if line else {})
    properties = ",".join(
        f"{name}={_property(v)}" for name, v in (place | {"title": title}).items()
    )
    return f"::{level} {properties}::{_data(message)}"


def _data(text):
    return str(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text):
    return _data(text).replace(":", "%3A").replace(",", "%2C")
