"""Nothing stays behind, whoever is killed, and when."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
from processes import kill
from soaking import soaked
from traces import IMPORT, until

from d2lmgpu.launch import LaunchError, launch


def test_processes_that_a_worker_started_end_with_it(traces):
    def worker():
        import subprocess

        stubborn = "trap '' TERM; for i in $(seq 60); do sleep 1; done"
        subprocess.Popen(["sh", "-c", stubborn], stdout=subprocess.DEVNULL)
        return "done"

    assert launch(worker, num_processes=1) == ["done"]
    traces.assert_none(seconds=2)


def test_a_detached_child_neither_keeps_launch_waiting_nor_outlives_it(traces):
    def worker():
        import os
        import time

        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)  # it holds the pipe on which rank 0 prints
            os._exit(0)
        return "done"

    assert launch(worker, num_processes=2) == ["done", "done"]
    traces.assert_none(seconds=0.1)


def test_shared_memory_that_a_worker_never_unlinks_ends_with_it(capfd):
    def worker(how):
        import os
        from multiprocessing.shared_memory import SharedMemory

        name = SharedMemory(create=True, size=1 << 20).name
        if how == "raised":
            raise ValueError(name)
        if how == "killed":
            print(name, flush=True)
            os.kill(os.getpid(), 9)
        return name

    (returned,) = launch(worker, "returned", num_processes=1)
    with pytest.raises(LaunchError, match="psm_") as raised:
        launch(worker, "raised", num_processes=1)
    with pytest.raises(LaunchError, match="SIGKILL"):
        launch(worker, "killed", num_processes=1)
    names = re.findall(r"psm_\w+", f"{returned} {raised.value} {capfd.readouterr().out}")
    assert len(set(names)) == 3 and not set(names) & set(os.listdir("/dev/shm"))


CALLER = """
    from pathlib import Path
    from d2lmgpu.launch import launch

    def worker(folder):
        import os, signal
        from torch import distributed as dist
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            os.environ.clear()
            signal.pause()
        Path(folder, f"ready-{dist.get_rank()}").touch()
        sum(range(10**12))  # one long step of C code that never lets another thread run

    launch(worker, FOLDER, num_processes=2)
"""


@pytest.mark.parametrize(
    ("victims", "moment"),
    [
        ("guard", "supervisor starts"),
        ("caller", "workers start"),
        ("supervisor", "workers run"),
        ("caller and supervisor", "workers run"),
        ("caller and guard", "workers run"),
        *soaked(
            ("caller", "supervisor starts"),
            ("caller", "workers run"),
            ("guard", "workers run"),
        ),
    ],
)
def test_kill_leaves_nothing(traces, tmp_path, victims, moment):
    program = textwrap.dedent(CALLER).replace("FOLDER", repr(str(tmp_path)))
    caller = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    reached = {
        "supervisor starts": lambda: traces.processes("supervisor"),
        "workers start": lambda: traces.processes("worker"),
        "workers run": lambda: len(list(tmp_path.glob("ready-*"))) == 2,
    }
    assert until(reached[moment], seconds=60), caller.stderr
    doomed = [
        p for role in ("guard", "supervisor") if role in victims for p in traces.processes(role)
    ]
    if "caller" in victims:
        caller.kill()
    kill(doomed)
    _, stderr = caller.communicate(timeout=60)
    traces.assert_none(caller_ended=True)
    if victims == "supervisor":
        assert "LaunchError: The supervisor of the workers ended with -9" in stderr


def test_kill_before_the_task_is_given_leaves_nothing(traces):
    program = "from d2lmgpu.launch import prepare; prepare(); input()"
    caller = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert until(lambda: traces.processes("fork server"), seconds=IMPORT)
    caller.kill()
    caller.communicate(timeout=60)
    # It looks for its caller when it has imported PyTorch.
    assert until(lambda: not traces.processes("fork server"), seconds=IMPORT)
    traces.assert_none(caller_ended=True)
