"""The one command: help on each, and what goes wrong said in a line, not in a traceback."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from d2lmgpu import __main__ as cli
from d2lmgpu.costmodel.measure import Calibration
from d2lmgpu.watch import WatchError


def commands(parser, above=()):
    """The words of each command, those below another command too, as the parser has them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                inner = [*commands(below, (*above, word))]
                yield from inner or [(*above, word)]


COMMANDS = sorted({" ".join(words) for words in commands(cli.parser())})
QUESTIONS = {"check", "explain"}  # whose exit codes 0, 1 and 2 are answers
LOADS = "from d2lmgpu import torch as d2l"


def run(*arguments, **keywords):
    command = [sys.executable, "-m", "d2lmgpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **keywords)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_on_each_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([*command.split(), "--help"])
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert printed.startswith(f"usage: d2lmgpu {command} ")


def misused(arguments, capsys):
    """The exit code of a command that was called with wrong arguments, and its last line."""
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    out, err = capsys.readouterr()
    assert not out and "Traceback" not in err
    return end.value.code, err.splitlines()[-1]


# command -> arguments that are wrong, and what the error names; an unknown option is tried with all
WRONG = {
    "calibrate": ([], "framework"),
    "check": (["--devices", "two", "train.py"], "two"),
    "cluster down": (["n1"], "n1"),
    "cluster rate": ([], "rate"),
    "cluster up": (["--hosts", "two"], "two"),
    "doctor": (["torch"], "torch"),
    "explain": (["--devices", "one", "train.py"], "one"),
    "fits": (["train.py"], "--gpu"),
    "forecast": (["lenet"], "--published"),
    "gpu-check": (["torch"], "torch"),
    "record": ([], "chapter"),
    "reset": ([], "notebook"),
}
LEAST = {  # what a command must be given, beside the unknown option
    "calibrate": ["torch"],
    "check": ["train.py"],
    "cluster rate": ["1gbit"],
    "explain": ["train.py"],
    "fits": ["--gpu", "T4", "train.py"],
    "record": ["a.ipynb"],
    "reset": ["a.ipynb"],
}


def test_every_command_has_its_cases():
    assert set(WRONG) == set(RIGHT) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_arguments_are_no_answer(command, capsys):
    arguments, named = WRONG[command]
    unknown = ["--no-such-option", *LEAST.get(command, [])]
    for given, word in ((arguments, named), (unknown, "--no-such-option")):
        code, last = misused([*command.split(), *given], capsys)
        assert code == (cli.MISUSE if command in QUESTIONS else 2)
        assert last.startswith("d2lmgpu") and ": error: " in last and word in last


def test_no_command_and_an_unknown_one(capsys):
    for arguments in ([], ["train"], ["cluster"], ["cluster", "left"]):
        code, last = misused(arguments, capsys)
        assert code == 2 and "COMMAND" in last


MEASURED = Calibration("torch", "processes", "ring", 2, 1e9, 1e-4, 1e9, (), 0.1, 0.1, 3.0)
PYTHON = sys.executable
SCRIPT = ["train.py", "--epochs", "1"]
UP = {"hosts": {"n1": {"address": "10.1.2.3"}}, "rate": "100mbit"}
# command -> (arguments, the function of its room, how it is called, what it returns,
#             the exit status, a word that is printed)
RIGHT = {
    "calibrate": (
        ["torch", "processes"],
        "costmodel.measure.calibrate",
        call("torch", "processes"),
        MEASURED,
        0,
        '"bandwidth": 1000000000.0',
    ),
    "check": (
        ["--devices", "3", "--progress", *SCRIPT],
        "watch.check.run.check",
        call("train.py", ["--epochs", "1"], 3, unprotected=False, progress=True),
        None,
        2,
        "why not",
    ),
    "cluster down": ([], "process.cluster.box.down", call(), None, 0, ""),
    "cluster rate": (["10mbit"], "process.cluster.box.rate", call("10mbit"), None, 0, ""),
    "cluster up": (
        ["--hosts", "1", "--rate", "100mbit"],
        "process.cluster.box.up",
        call(1, "100mbit", False),
        UP,
        0,
        "n1 10.1.2.3",
    ),
    "doctor": ([], "course.doctor.main", call(), 0, 0, ""),
    "explain": (
        ["--unprotected", "--devices", "1,4", "--", *SCRIPT],
        "watch.explain.script.explain_script",
        call("train.py", ["--epochs", "1"], [1, 4], unprotected=True, progress=None),
        None,
        2,
        "why not",
    ),
    "fits": (
        ["--gpu", "T4", "--devices", "1,2", *SCRIPT],
        "watch.fits.answer.fits_script",
        call("train.py", ["--epochs", "1"], "T4", [1, 2], False, remedies=False),
        ["it fits"],
        0,
        "it fits",
    ),
    "forecast": (["--published"], "costmodel.fit.main", call(), None, 0, ""),
    "gpu-check": (
        ["--mxnet", "python"],
        "course.gpu_check.main",
        call({"torch": PYTHON, "mxnet": "python"}),
        0,
        0,
        "",
    ),
    "record": (
        ["a.ipynb"],
        "course.recording.record_chapter",
        call("a.ipynb"),
        "a.json",
        0,
        "a.json",
    ),
    "reset": (
        ["a.ipynb"],
        "course.reset.reset",
        call("a.ipynb"),
        Path("mine.ipynb"),
        0,
        "mine.ipynb",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_asks_its_room(command, monkeypatch, capsys):
    """With what was given; what the rooms then do is tested in theirs."""
    arguments, function, asked, returned, status, printed = RIGHT[command]
    room = Mock(return_value=returned)
    if command in QUESTIONS:
        room.side_effect = WatchError("why not")
    monkeypatch.setattr(f"d2lmgpu.{function}", room)
    assert cli.main([*command.split(), *arguments]) == status
    assert room.mock_calls == [asked]
    out, err = capsys.readouterr()
    assert printed in out + err and "Traceback" not in err


def test_help_lists_every_command_and_imports_nothing_that_it_does_not_need():
    program = (
        "import sys; from d2lmgpu import __main__ as cli\n"
        "try: cli.main(['--help'])\n"
        "finally: print(sorted({'numpy', 'torch', 'matplotlib', 'IPython'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert all(f"\n    {command.split()[0]}" in printed for command in COMMANDS)
    assert printed.endswith("[]\n")


@pytest.fixture
def chapter(tmp_path):
    """Writes a chapter of one cell, whose name is that of a chapter that can be recorded."""

    def write(source, tags=("define",)):
        path = tmp_path / "scratch" / "toy.ipynb"
        path.parent.mkdir()
        cell = {"cell_type": "code", "metadata": {"tags": tags}, "source": source}
        path.write_text(json.dumps({"cells": [cell]}))
        return path

    return write


@pytest.mark.parametrize(
    "source, tags, named",
    [
        ("1", (), "no cell is tagged"),
        (f"{LOADS}", ("define",), "defines no train"),
        (f"{LOADS}\ndef train(*settings): pass", ("define",), "returned None"),
        (f"{LOADS}\ndef train(*settings): return 0.5", ("define",), "returned 0.5"),
        (f"{LOADS}\nd2l.devices('two')", ("define",), "two"),
    ],
)
def test_a_chapter_that_cannot_be_recorded(
    chapter, tmp_path, monkeypatch, capsys, source, tags, named
):
    monkeypatch.setenv("D2LMGPU_PROFILE", "full")
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:2")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["record", str(chapter(source, tags))]) == 1
    printed = capsys.readouterr().err
    assert named in printed and "Traceback" not in printed
    assert not (tmp_path / "records").exists()


def test_a_file_that_is_not_there_or_is_no_notebook(tmp_path, capsys):
    (tmp_path / "scratch").mkdir()
    path = tmp_path / "scratch" / "toy.ipynb"
    assert cli.main(["record", str(path)]) == 1
    assert str(path) in capsys.readouterr().err
    path.write_text("{")
    assert cli.main(["record", str(path)]) == 1
    assert "no notebook" in capsys.readouterr().err


@pytest.mark.parametrize("name, value", [("D2LMGPU_PROFILE", "fast"), ("D2LMGPU_DEVICES", "tpu")])
def test_a_wrong_setting(chapter, monkeypatch, capsys, name, value):
    monkeypatch.setenv(name, value)
    path = chapter(f"{LOADS}\ndef train(*settings): pass")
    assert cli.main(["record", str(path)]) == 1
    assert name in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["calibrate", "mxnet", "processes"], "threads"),
        (["forecast", "lenet", "jax"], "lenet with torch"),
        (["reset", "/no/such/notebook.ipynb"], "git"),
    ],
)
def test_other_commands_say_what_is_allowed(capsys, arguments, named):
    assert cli.main(arguments) == 1
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "explain"])
def test_what_cannot_be_asked_is_no_outcome(command, tmp_path, capsys):
    """Neither wrong options, nor a script or devices that are not there, nor a mistake of ours."""
    script = tmp_path / "train.py"
    script.write_text("pass")
    wrong = [["--devices", "4096", str(script)], ["nowhere.py"], ["--json", "--github", "x.py"], []]
    for arguments in wrong:
        try:
            code = cli.main([command, *arguments])
        except SystemExit as end:  # argparse's own
            code = end.code
        assert code == cli.MISUSE
        out, err = capsys.readouterr()
        assert err and "Traceback" not in err and not out


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr("d2lmgpu.course.doctor.main", lambda: 1 / 0)
    assert cli.main(["doctor"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    monkeypatch.setattr("d2lmgpu.watch.check.run.check", lambda *_, **__: 1 / 0)
    assert cli.main(["check", "train.py"]) == cli.MISUSE
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_forecast_without_the_course_says_where_it_is(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("d2lmgpu.course.forecasting.CHAPTERS", tmp_path / "chapters")
    assert cli.main(["forecast", "lenet", "torch"]) == 1
    printed = capsys.readouterr().err
    assert str(tmp_path / "chapters") in printed and "clone" in printed


def test_the_published_tables():
    done = run("forecast", "--published")
    assert done.returncode == 0
    assert "efficiency" in done.stdout and "modelled" in done.stdout
    assert run("forecast").returncode == 2
