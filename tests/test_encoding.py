"""Text files are read and written in UTF-8, whatever the machine's own encoding is."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = [path for room in ("d2lmgpu", "tools") for path in sorted((ROOT / room).rglob("*.py"))]


def unsaid(source: str) -> list[int]:
    """The lines that open a file as text and do not say its encoding."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and _is_text(node)
        and not {"encoding", None} & {keyword.arg for keyword in node.keywords}
    ]


def _is_text(call):
    called = call.func
    if isinstance(called, ast.Attribute):
        own = {"read_text": 0, "write_text": 1}
        return called.attr in own and len(call.args) <= own[called.attr]
    if not (isinstance(called, ast.Name) and called.id == "open"):
        return False
    modes = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
    return all(isinstance(mode, ast.Constant) and "b" not in mode.value for mode in modes)


@pytest.mark.parametrize(
    "source, lines",
    [
        ("path.read_text()", [1]),
        ("\nPath(a).write_text(b)", [2]),
        ("open(a)", [1]),
        ("open(a, 'w')", [1]),
        ("open(a, mode='r', newline='')", [1]),
        ("open(a, 'rb')", []),
        ("path.read_text(encoding='utf-8')", []),
        ("path.write_text(b, encoding='utf-8')", []),
        ("path.read_text('utf-8')", []),
        ("open(a, *how, **more)", []),
        ("os.open(a, 0)", []),
    ],
)
def test_places_without_an_encoding_are_found(source, lines):
    assert unsaid(source) == lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_says_its_encoding(path):
    assert unsaid(path.read_text(encoding="utf-8")) == []


LATIN = """
import locale
from d2lmgpu.course.breaking.record import Page, module
from d2lmgpu.lab import scripts
assert locale.getpreferredencoding(False).lower().replace("-", "") not in ("utf8", "utf_8")
assert "\\u270e" in scripts.module() and "\\u2013" in module() and Page()._repr_html_()
print("right")
"""


def test_under_another_encoding_the_lab_is_the_same():
    """As on Windows: without Python's UTF-8 mode, in a locale that has not all letters."""
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    result = subprocess.run(
        [sys.executable, "-c", LATIN], env=os.environ | plain, capture_output=True, text=True
    )
    assert result.stdout == "right\n", result.stderr
