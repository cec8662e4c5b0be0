"""Workflow commands, read back as GitHub's runner reads them."""

import re
from urllib.parse import unquote

import pytest

from d2lmgpu.watch.check.run import Verdict
from d2lmgpu.watch.github import annotation


def read(line):
    """(level, properties, message) of one workflow command."""
    assert "\n" not in line and "\r" not in line
    level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
    pairs = (pair.split("=", 1) for pair in properties.split(","))
    return level, {name: unquote(value) for name, value in pairs}, unquote(message)


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "examples").mkdir()
    return tmp_path / "examples" / "train.py"


def test_what_github_splits_at_comes_back_as_it_was(script):
    title, message = "a: b, 100%", "100%25 of it::\r\nwarning: x, y"
    level, properties, text = read(annotation("error", title, message, script, "net.py:7"))
    assert (level, text) == ("error", message)
    assert properties == {"file": "examples/net.py", "line": "7", "title": title}


def test_a_script_as_a_whole_has_no_line(script, monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE")
    monkeypatch.chdir(script.parent)
    _, properties, _ = read(annotation("warning", "t", "m", script))
    assert properties == {"file": "train.py", "title": "t"}


def test_each_outcome_of_check_has_its_level(script):
    facts = {"notes": [], "updates": 16, "devices": 2, "double": True}
    same = Verdict(True, 0.0, "none", None, "", **facts)
    assert same.annotations(script) == []
    defect = Verdict(False, 1.0, "sampler", "train.py:3", "too many", **facts)
    (line,) = defect.annotations(script)
    level, properties, message = read(line)
    assert (level, properties["line"]) == ("error", "3") and message.startswith("too many\n")
    (line,) = Verdict.refused("It never trains.", 2).annotations(script)
    level, properties, message = read(line)
    assert (level, message) == ("warning", "It never trains.") and "line" not in properties
