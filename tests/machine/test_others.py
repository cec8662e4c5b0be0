"""What others take of the cores: counted from files that a test has made, and for real."""

import os
import subprocess
import sys

import pytest

from d2lmgpu.machine import others
from d2lmgpu.machine.others import Others

CORE = "cpu{} {user} 5 7 1000 3 0 0 {steal} 0 0"
PROCESS = "{pid} (a (name)) R {parent} " + "0 " * 9 + "{own} 0 {ended} 0 0"
PID = os.getpid()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of three cores of which two are ours; it goes on when it is told to."""
    now = [100.0]
    monkeypatch.setattr(others.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(others, "PROC", tmp_path)
    monkeypatch.setattr(others, "STAT", tmp_path / "stat")
    monkeypatch.setattr(others, "TICKS", 100)
    monkeypatch.setattr(others.os, "sched_getaffinity", lambda _: {0, 2}, raising=False)

    def tell(seconds, cores=(0, 0, 0), steal=0, own=0, child=0, stranger=0):
        now[0] += seconds
        lines = [CORE.format(i, user=ticks, steal=steal) for i, ticks in enumerate(cores)]
        (tmp_path / "stat").write_text("\n".join(["cpu 1 1 1 1", *lines, "intr 1 2"]))
        for pid, parent, ticks in ((PID, 1, own), (PID + 1, PID, child), (7, 1, stranger)):
            folder = tmp_path / str(pid)
            folder.mkdir(exist_ok=True)
            text = PROCESS.format(pid=pid, parent=parent, own=ticks, ended=0)
            (folder / "stat").write_text(text)

    tell(0)
    return tell


def test_what_is_not_ours_on_our_cores_is_others(machine):
    seen = Others()
    machine(10, cores=(1000, 900, 800), own=600, child=400, stranger=800)
    assert seen.cores() == pytest.approx((10 + 8 - 6 - 4) / 10)


def test_what_the_hypervisor_gives_to_others_counts(machine):
    seen = Others()
    machine(10, steal=250)
    assert seen.cores() == pytest.approx(0.5)


def test_what_is_not_told_or_too_short_is_none(machine, tmp_path):
    seen = Others()
    machine(0.1, cores=(10, 0, 0))
    assert seen.cores() is None, "a few ticks"
    (tmp_path / "stat").unlink()
    machine(10)
    (tmp_path / "stat").unlink()
    assert seen.cores() is None and Others().cores() is None


def test_a_child_of_ours_is_not_others():
    before = others._own()
    work = "import time\nwhile time.process_time() < 0.6: pass\nprint(flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", work], **pipes) as child:
        child.stdout.readline()
        assert others._own() - before > 0.5
        child.communicate(b"\n")
    assert others._own() - before > 0.5, "also when it has ended"
