"""What a chapter depends on, beside its own text: noted while it runs, compared later.

Each process that it starts notes the files of the course that it reads and the folders that it
lists (``file_notes/sitecustomize.py``). To these come the modules that they name, in an import or a
string, wherever it stands: a worker may import what its kernel does not, on another host, or
without that note. A chapter runs again where something of all this has changed.
"""

import ast
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

NEVER = {"__pycache__", ".ipynb_checkpoints"}  # made by who reads a folder

NOTING = Path(__file__).with_name("file_notes")
LOG = "D2LMGPU_NOTED"
FILES = r"[\w./-]+\.py\b"  # a script, as a command names it
MODULES = r"\bd2lmgpu(?:\.\w+)+"


def environment(log: Path) -> dict[str, str]:
    """What is added to the environment of a chapter's kernel so that all is noted in ``log``."""
    path = [str(NOTING), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {LOG: str(log), "PYTHONPATH": os.pathsep.join(path)}


def noted(log: Path, root: Path) -> set[str]:
    """The files and folders in ``log``, as paths in the course; the log is removed."""
    paths = set(log.read_text(encoding="utf-8").splitlines()) if log.exists() else set()
    log.unlink(missing_ok=True)
    files = set()
    for path in map(Path, map(os.path.normpath, paths)):
        if path.parent.name == "__pycache__" and path.suffix == ".pyc":
            path = Path(importlib.util.source_from_cache(path))
        if path.is_relative_to(root) and not NEVER & {*path.parts}:
            files.add(str(path.relative_to(root)))
    return files - {"."}


def dependencies(chapter: Path, code: Iterable[str], noted: set[str], root: Path) -> set[str]:
    """``noted`` and all that it and the chapter's ``code`` name, as paths in the course."""
    files, todo = set(noted), {path for path in noted if path.endswith(".py")}
    for cell in code:
        todo |= _named(cell, chapter.parent, root)
    while todo:
        path = todo.pop()
        files.add(path)
        if (file := root / path).is_file():
            todo |= _named(file.read_text(encoding="utf-8"), file.parent, root) - files
    return files


def digests(paths: Iterable[str], root: Path, since: float = float("inf")) -> dict[str, str]:
    """{path: its content in a few digits}; another one for what was changed after ``since``."""
    return {path: _digest(root / path, since) for path in sorted(paths)}


def _digest(path, since):
    try:
        if path.is_dir():
            # The folder's own time changes with what NEVER names.
            names = sorted({*os.listdir(path)} - NEVER)
            content = "\n".join(names).encode()
            changed = any((path / name).lstat().st_ctime > since for name in names)
        else:
            content = path.read_bytes()
            changed = path.stat().st_mtime > since
    except OSError:
        return "not there"
    return "changed meanwhile" if changed else hashlib.sha256(content).hexdigest()[:16]


def _named(code, folder, root):
    """The files of the course that ``code``, in ``folder``, names."""
    try:
        names = set(_names(code))
    except SyntaxError:  # a cell with a command of IPython's: its words are looked at
        names = set(re.findall(f"{MODULES}|{FILES}", code))
    files = set()
    for name in names:
        if name.endswith(".py"):
            candidates = [folder / name]
        else:
            candidates = [*_modules(name, root), *_modules(name, folder)]
        for file in candidates:
            path = Path(os.path.normpath(file))
            if path.is_relative_to(root) and path.is_file():
                files.add(str(path.relative_to(root)))
    return files


@cache
def _names(code) -> tuple[str, ...]:
    return tuple(_walk(ast.parse(code)))


def _walk(tree) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(text := node.value, str):
            yield from () if id(node) in docstrings else re.findall(f"{MODULES}|{FILES}", text)


def _modules(name, folder):
    """The files of the modules along a dotted name, from a folder of the import path."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:end])
        yield from (place / "__init__.py", place.with_name(f"{place.name}.py"))
