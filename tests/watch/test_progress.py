"""What is written on stderr for whoever waits: at a terminal, in a log, and if nobody asks."""

import io
import re
import sys
import threading

import pytest

from d2lmgpu.watch import progress
from d2lmgpu.watch.progress import Progress


class Stream(io.StringIO):
    """A stderr that may be a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal, self.third = terminal, threading.Event()

    def isatty(self):
        return self.terminal

    def write(self, text):
        super().write(text)
        if self.getvalue().count("train.py") == 3:
            self.third.set()


@pytest.fixture
def written(monkeypatch):
    """What two runs write, of which the second has to be done again."""

    def write(terminal, asked):
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress(asked, expected=2)
        for what in ("train.py in 2 processes", "train.py in 1 process", "train.py in 1 process"):
            with progress.run(what, 80):
                pass
        return stream.getvalue()

    return write


@pytest.mark.parametrize("terminal, asked", [(False, None), (False, False), (True, False)])
def test_nobody_is_told_who_has_not_asked(written, terminal, asked):
    assert written(terminal, asked) == ""


def test_a_log_has_a_line_when_a_run_begins_and_when_it_ends(written):
    lines = written(False, True).splitlines()
    assert len(lines) == 6 and not any("\r" in line or "\x1b" in line for line in lines)
    assert [line.split(":")[0] for line in lines[::2]] == ["run 1 of 2", "run 2 of 2", "run 3 of 3"]
    assert all(end.startswith(f"{begin}, ") for begin, end in zip(lines[::2], lines[1::2]))


@pytest.mark.parametrize("asked", [None, True])
def test_a_terminal_has_one_line_which_goes(written, asked):
    shown = written(True, asked)
    assert "\n" not in shown and re.search(r"run 2 of 2: .*0 s of 80 at most", shown)
    assert shown.endswith("\r\x1b[K")


def test_the_seconds_go_on_while_a_run_does(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(True))
    monkeypatch.setattr(progress, "EVERY", 0.001)
    with Progress().run("train.py in 1 process", 80):
        assert sys.stderr.third.wait(30)
    assert sys.stderr.getvalue().endswith("\r\x1b[K")
