"""Scripts that cannot be compared: told in words, nothing left, the reader's files as before."""

import os
import uuid
from dataclasses import replace

import pytest
from processes import marked

from d2lmgpu.machine.hardware import num_cores
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check import run as check_run
from d2lmgpu.watch.check.run import LIMITS, check

BY_HAND = """
import torch
w = torch.ones(3, requires_grad=True)
for _ in range(3):
    (w * w).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
open("log.txt", "w").write("over")
"""
ARGUMENTS = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('epochs')\np.parse_args()"
)
BAD = {
    "ends at once": ("print('hello')", "never (trained|imported PyTorch).*hello"),
    "needs arguments": (ARGUMENTS, "exit code 2.*epochs"),
    "is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "raises": ("open('log.txt', 'a').write('more')\nopen('nowhere.bin')", "nowhere.bin"),
    "never trains": ("import time\ntime.sleep(1000)", "time limit"),
    "no optimizer": (BY_HAND, "torch.optim"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The reader's folder; afterwards its files are as before and no process is left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("D2LMGPU_TEST", mark)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("mine")
    yield tmp_path
    assert (tmp_path / "log.txt").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} <= {"log.txt", "script.py"}
    assert [p for p in marked("D2LMGPU_TEST", mark) if p.pid != os.getpid()] == []


@pytest.mark.parametrize("kind", BAD)
def test_a_script_that_does_not_train_is_told(folder, kind, monkeypatch):
    """The limit ends it, not who waits for its end, also where importing PyTorch takes long."""
    monkeypatch.setattr("d2lmgpu.watch.ranks.GRACE", 300.0)
    source, words = BAD[kind]
    (folder / "script.py").write_text(source)
    limits = replace(LIMITS, wall=2.0 if kind == "never trains" else LIMITS.wall)
    with pytest.raises(WatchError, match=f"(?s){words}"):
        check("script.py", limits=limits)


@pytest.mark.parametrize("devices, words", [(1, "one device"), (max(2, num_cores()) + 1, "core")])
def test_devices_that_are_not_there(folder, devices, words):
    (folder / "script.py").write_text("pass")
    with pytest.raises(WatchError, match=words):
        check("script.py", devices=devices)


def test_on_one_core_two_processes_are_compared_and_three_are_not(folder, monkeypatch):
    monkeypatch.setattr("d2lmgpu.watch.run.num_cores", lambda: 1)
    (folder / "script.py").write_text("pass")
    with pytest.raises(WatchError, match="Give at most 2"):
        check("script.py", devices=3)
    with pytest.raises(WatchError, match=r"^(?!.*take turns)"):  # what is wrong is the script
        check("script.py", devices=2)


def test_a_script_that_is_not_there(folder):
    with pytest.raises(WatchError, match="no such file"):
        check("nowhere.py")


def test_without_pytorch(folder, monkeypatch):
    (folder / "script.py").write_text("pass")
    monkeypatch.setattr("d2lmgpu.watch.run.version_of", lambda name: None)
    with pytest.raises(WatchError, match="PyTorch is not installed"):
        check("script.py")


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("raise FileNotFoundError(2, 'no such file', 'nowhere.bin')", 1),
        ("raise ValueError('Must specify global_rank or group_rank')", 1),
        ("raise RuntimeError('expected Float but found Double')", 2),
        ("raise ValueError('no such type: torch.float64')", 2),
        # what one rank raises whatever the others do it raises again
        ("import os\nraise (RuntimeError, ImportError)[int(os.environ['RANK'])]('closed')", 1),
    ],
)
def test_only_what_float64_may_have_caused_is_tried_without_it(folder, line, runs, monkeypatch):
    started = []
    really = check_run.run
    monkeypatch.setattr(check_run, "run", lambda *a, **k: started.append(a) or really(*a, **k))
    (folder / "script.py").write_text(f"import torch\n{line}")
    with pytest.raises(WatchError, match="The script raised"):
        check(folder / "script.py")
    assert len(started) == runs
