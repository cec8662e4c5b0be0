"""What a worker raised is shown as Python itself would have shown it."""

import re
import subprocess
import sys

import pytest
from soaking import sample

from d2lmgpu.lab import worker
from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.process.errors import error_report

RAISING = {
    "a cause": """
    try:
        {}["x"]
    except KeyError as error:
        raise RuntimeError("epoch failed") from error
""",
    "a context": """
    try:
        int("one")
    except ValueError:
        [][0]
""",
    "no context": """
    try:
        int("one")
    except ValueError:
        raise TypeError("only this") from None
""",
    "a cause of a cause": """
    try:
        try:
            1 / 0
        except ZeroDivisionError as first:
            raise ValueError("second") from first
    except ValueError as second:
        raise RuntimeError("third") from second
""",
    "notes": """
    error = ValueError("bad")
    error.add_note("in epoch 3")
    error.add_note("of run 7")
    raise error
""",
    "a group": """
    found = []
    for text in "ab":
        try:
            int(text)
        except ValueError as error:
            found.append(error)
    raise ExceptionGroup("both", found)
""",
    "a group in a group with a cause": """
    try:
        1 / 0
    except ZeroDivisionError as error:
        inner = ExceptionGroup("inner", [error, OSError(28, "No space")])
        raise ExceptionGroup("outer", [inner, KeyError(1)]) from error
""",
    "an error in the syntax": """
    exec("x = = 1")
""",
    "an error that cannot be shown": """
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no")
    raise Odd(1)
""",
    "an endless recursion": """
    train()
""",
}


def written(folder, name):
    """The file with a ``train`` that raises, the function, and what Python prints of it."""
    file = folder / "script.py"
    file.write_text(f"def train():{RAISING[name]}\n\ntrain()\n")
    printed = subprocess.run([sys.executable, file], capture_output=True, text=True).stderr
    call = r'(?m)^(  \| )?  File ".*", line \d+, in <module>\n(  \| )?    train\(\)\n'
    namespace = {"__name__": "__main__"}
    exec(compile(file.read_text().removesuffix("train()\n"), str(file), "exec"), namespace)
    printed = re.sub(call, "", printed).replace("__main__.", "")  # which `traceback` leaves out
    return namespace["train"], printed


def raised(train):
    try:
        train()
    except BaseException as error:
        return error_report(error, __file__)


@pytest.mark.parametrize("name", RAISING)
def test_a_traceback_is_that_of_python_from_the_reader_s_code_on(tmp_path, name):
    train, printed = written(tmp_path, name)
    trace = raised(train)["traceback"]
    if "recursion" in name:  # it says how often, which depends on how deep it began
        trace, printed = (re.sub(r"\d+ more times", "", text) for text in (trace, printed))
    assert trace.strip() == printed.strip()


@pytest.mark.parametrize("name", sample(1, ["a cause", "a context", "notes", "a group"]))
def test_launch_shows_all_of_it(tmp_path, traces, name):
    train, printed = written(tmp_path, name)
    with pytest.raises(LaunchError) as caught:
        launch(train, num_processes=1)
    assert str(caught.value).startswith("Worker 0 of 1 raised ")
    assert printed.strip() in str(caught.value)


@pytest.mark.parametrize("name", RAISING)
def test_the_lab_shows_all_of_it(tmp_path, name):
    train, _ = written(tmp_path, name)
    try:
        train()
    except BaseException as error:
        outcome = worker.failure(error, "train raised")
    raised_here = raised(train)
    assert outcome["message"] == f"train raised {raised_here['error']}"
    assert outcome["traceback"].count("Traceback") == raised_here["traceback"].count("Traceback")


class Odd(Exception):
    def __repr__(self):
        raise KeyError("no")


class Odder(BaseException):
    @property
    def __cause__(self):
        raise ValueError("no")

    def __str__(self):
        raise SystemExit(3)


@pytest.mark.parametrize("error", [Odd(1), Odder(1), Odder(Odd(2))])
def test_what_cannot_be_shown_is_named_by_its_type(error):
    assert type(error).__name__ in error_report(error, __file__)["error"]


@pytest.mark.parametrize("text", ["x" * 5_000_000, "a line\n" * 500_000, "é" * 3_000_000])
def test_a_long_text_is_cut(text):
    def train():
        raise ValueError(text)

    report = raised(train)
    for part in ("error", "traceback"):
        assert len(report[part]) < 13_000
        assert re.search(r"\[… [\d,]+ bytes left out …\]", report[part])
    assert report["error"].startswith(f"ValueError: {text[:9]}")
    assert "in train" in report["traceback"]


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(32, "Broken pipe"),
        ConnectionResetError(104, "Connection reset by peer"),
        RuntimeError("a worker of mine"),
        OSError("closed by peer"),
    ],
)
def test_an_error_of_the_reader_s_own_is_no_lost_peer(error):
    assert error_report(error, __file__)["waited"] is None
