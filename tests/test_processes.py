"""The looks at processes: at one that runs, one that nobody has buried, and one that has gone."""

import os
import signal
import subprocess
import sys
import uuid

import psutil
import pytest
from processes import asked, below, commands, kill, left, marked, running, runs


@pytest.fixture
def sleeper():
    """A process with a mark in its environment, and the mark."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(["sleep", "60"], env=os.environ | {"D2LMGPU_TEST": mark})
    yield process, mark
    process.kill()
    process.wait()


def test_one_that_runs_is_found(sleeper):
    process, mark = sleeper
    (seen,) = marked("D2LMGPU_TEST", mark, "name")
    assert seen.pid == process.pid and seen.info["name"] == "sleep"
    assert commands([seen])[seen] == commands()[seen] == "sleep 60"
    assert running(lambda other: other.pid == process.pid) == [seen]
    assert runs(seen) and left([seen], 0) == [seen]


def test_one_that_has_ended_is_none_before_and_after_its_parent_asks(sleeper):
    process, mark = sleeper
    (seen,) = marked("D2LMGPU_TEST", mark)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays, as a zombie
    for status in (psutil.STATUS_ZOMBIE, None):
        assert asked(seen.status) == status
        assert marked("D2LMGPU_TEST", mark) == [] and commands([seen]) == {}
        assert not asked(lambda: runs(seen)) and left([seen], 0) == []
        process.wait()


def test_one_that_has_gone_is_not_killed_and_the_next_is(sleeper):
    process, mark = sleeper
    (seen,) = marked("D2LMGPU_TEST", mark)
    gone = subprocess.Popen(["sleep", "60"])
    dead = psutil.Process(gone.pid)
    gone.kill()
    gone.wait()
    kill([dead, seen])
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_one_whose_parent_never_asks_is_not_left():
    parent = subprocess.Popen(["sh", "-c", "sleep 60 & exec sleep 60"])
    while not (children := psutil.Process(parent.pid).children()):
        pass
    (child,) = children
    child.kill()
    try:
        assert left([child], 60) == [] and child.status() == psutil.STATUS_ZOMBIE
    finally:
        parent.kill()
        parent.wait()


def test_workers_are_below_a_guard_and_its_supervisor():
    workers = "[subprocess.Popen(['sleep', '60']).pid for _ in range(2)]"
    code = f"import os, subprocess\nif not os.fork(): print(*{workers}, flush=True)\nos.wait()"
    guard = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        pids = [int(pid) for pid in guard.stdout.readline().split()]
        supervisor, workers = below(psutil.Process(guard.pid))
        assert [worker.pid for worker in workers] == pids and supervisor.ppid() == guard.pid
    finally:
        kill(psutil.Process(guard.pid).children(recursive=True))
        guard.communicate()
