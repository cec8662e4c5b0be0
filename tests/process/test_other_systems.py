"""What other systems lack is taken away here; nothing of this has run on Windows or macOS."""

import os
import subprocess
import sys

import pytest

from d2lmgpu.launch import LaunchError, launch

WITHOUT = """
import ctypes, os, pkgutil, platform, select, signal, sys
from importlib import import_module

def all_modules():
    import d2lmgpu
    for module in pkgutil.walk_packages(d2lmgpu.__path__, "d2lmgpu."):
        if ".mxnet" not in module.name and "__main__" not in module.name:  # one framework a process
            import_module(module.name)

all_modules()  # with all that they import from elsewhere, which knows Windows by itself
for name in [name for name in sys.modules if name.split(".")[0] == "d2lmgpu"]:
    del sys.modules[name]
LACKS = {
    os: "fork register_at_fork sysconf nice setpgid getpgid killpg sched_getaffinity WNOHANG",
    signal: "SIGBUS SIGKILL SIGCHLD SIGSTOP SIGHUP pause", select: "poll epoll",
}
for module, names in LACKS.items():
    for name in names.split():
        delattr(module, name)
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
load = ctypes.CDLL

def cdll(name, *rest):
    if name is None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    return load(name, *rest)

ctypes.CDLL = cdll
platform.system, platform.libc_ver = lambda: "Windows", lambda: ("", "")
sys.platform = "win32"
all_modules()
"""
TRAIN = """
import torch
from d2lmgpu import torch as d2l
from d2lmgpu.backend.arguments import LENET_SHAPES
from d2lmgpu.machine.hardware import machine
os.environ["D2LMGPU_DEVICES"] = "cpu:2"
replicas = [d2l.get_params([torch.ones(s) for s in LENET_SHAPES], d) for d in d2l.devices(2)]
X, y = torch.rand(8, 1, 28, 28), torch.zeros(8, dtype=torch.int64)
d2l.train_batch(X, y, replicas, d2l.devices(2), 0.1)
print(torch.equal(replicas[0][-1], replicas[1][-1]), float(replicas[0][-1][0]) > 1, machine())
"""
LAUNCH = """
from d2lmgpu.launch import launch
try:
    launch(print, num_processes=2)
except ValueError as error:
    print(type(error).__name__, error)
try:
    launch(print, num_processes=2, hosts=["n1"])
except ValueError as error:
    print(type(error).__name__, error)
"""
LAB = """
from d2lmgpu.lab.view import TrainingLab
def train(num_gpus, batch_size, lr):
    pass
lab = TrainingLab(train)
lab.model.warm()
print(lab.model.message)
lab.model.run()
lab.model.runner.wait(60)
print(lab.model.message, [run.status for run in lab.model.runs])
"""


def output_of(code):
    """What Python prints for ``code`` where ``WITHOUT`` has taken those things away."""
    command = [sys.executable, "-c", WITHOUT + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_windows_lacks_keeps_no_module_from_import_and_threads_train():
    text = output_of(TRAIN)
    assert text.startswith("True True {") and "'memory_gib': None" in text


@pytest.mark.parametrize("code, started", [(LAUNCH, "PythonError "), (LAB, "")])
def test_without_forks_launch_and_the_lab_say_what_to_use(code, started):
    for line in output_of(code).splitlines():
        assert line.startswith(started)
        assert "processes that fork, and Windows has none" in line and "WSL" in line
    assert code == LAUNCH or line.endswith("['failed']")


def fails_on_rank_1(fail):
    from torch import distributed as dist

    if fail and dist.get_rank() == 1:
        raise ValueError("on purpose")
    return dist.get_rank()


def test_launch_without_what_only_linux_has(traces, monkeypatch, tmp_path):
    """No prctl and no /proc, as on macOS: ranks still meet, and their groups still end."""
    elsewhere = "import d2lmgpu.process.supervisor as s; s.LINUX = False"
    (tmp_path / "sitecustomize.py").write_text(elsewhere)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert launch(fails_on_rank_1, False, num_processes=2) == [0, 1]
    traces.assert_none(seconds=5)
    with pytest.raises(LaunchError, match="Worker 1 of 2 raised ValueError: on purpose"):
        launch(fails_on_rank_1, True, num_processes=2)
    traces.assert_none(seconds=5)
