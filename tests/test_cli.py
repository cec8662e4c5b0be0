"""The one command: help on each, and what goes wrong said in a line, not in a traceback."""

import json
import subprocess
import sys

import pytest

from d2lmgpu import __main__ as cli

COMMANDS = [
    *("doctor", "record", "forecast", "calibrate", "reset", "gpu-check"),
    *("check", "explain", "fits", "cluster"),
]
LOADS = "from d2lmgpu import torch as d2l"


def run(*arguments, **keywords):
    command = [sys.executable, "-m", "d2lmgpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **keywords)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_on_each_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([command, "--help"])
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert printed.startswith(f"usage: d2lmgpu {command} ")


def test_help_lists_every_command_and_imports_nothing_that_it_does_not_need():
    program = (
        "import sys; from d2lmgpu import __main__ as cli\n"
        "try: cli.main(['--help'])\n"
        "finally: print(sorted({'numpy', 'torch', 'matplotlib', 'IPython'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert all(f"\n    {command}" in printed for command in COMMANDS)
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
def test_a_chapter_that_cannot_be_recorded(chapter, tmp_path, monkeypatch, capsys, source, tags,
                                           named):  # fmt: skip
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
