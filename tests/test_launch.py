"""Worker processes: right results, clear errors, and nothing left behind, however a run ends.

Functions inside the tests travel by value, as those of a notebook do. Every process that a test
starts inherits a mark in its environment, by which those left over are found.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import psutil
import pytest
from jupyter_client.manager import KernelManager

from d2lmgpu.launch import LaunchError, launch, prepare

CHAPTER = Path(__file__).parents[1] / "chapters" / "concise"


class Traces:
    """What the processes of one test leave: processes, listening addresses, temporary folders."""

    def __init__(self, folder):
        self.mark, self.folder = uuid.uuid4().hex, folder

    def processes(self, role=""):
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get("D2LMGPU_TEST") == self.mark
                if marked and role in ("", self.role(process)):
                    found.append(process)
            except (psutil.Error, ProcessLookupError):
                pass
        return found

    @staticmethod
    def role(process):
        """'supervisor', or 'worker' for what it has forked and has become a group of its own."""
        if "d2lmgpu.workers" not in process.cmdline():
            return "other"
        forked = "d2lmgpu.workers" in process.parent().cmdline()
        if not forked:
            return "supervisor"
        return "worker" if os.getpgid(process.pid) == process.pid else "guard"

    def folders(self):
        return list(self.folder.glob("d2lmgpu-*"))

    def assert_none(self, but=(), seconds=20):
        def none():
            return not self.folders() and {p.pid for p in self.processes()} <= set(but)

        left = until(none, seconds) or [p.cmdline() for p in self.processes()] + self.folders()
        assert left is True, f"still there after {seconds} s: {left}"


def until(condition, seconds=20):
    """Whether ``condition()`` comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def traces(monkeypatch, tmp_path):
    traces = Traces(tmp_path)
    monkeypatch.setenv("D2LMGPU_TEST", traces.mark)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:4")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield traces
    for process in traces.processes():  # a failed test must not leave them to the next
        process.kill()


def test_results_come_by_rank_and_again_on_a_second_run(traces):
    def worker(a, b):
        import os

        import torch
        from torch import distributed as dist

        supervisor_group = os.getpgid(os.getppid())
        result = dist.get_rank(), dist.get_world_size(), a + b, torch.get_num_threads()
        return result, supervisor_group

    for _ in range(2):
        results, supervisor_groups = zip(*launch(worker, "x", "y", num_processes=2))
        assert results == ((0, 2, "xy", 1), (1, 2, "xy", 1))
        assert os.getpgrp() not in supervisor_groups  # an interrupt reaches the caller alone
        traces.assert_none(seconds=0.1)


def test_three_workers_sum_uneven_data(traces):
    numbers = list(range(7))

    def worker():
        import torch
        from torch import distributed as dist

        mine = torch.tensor(numbers[dist.get_rank() :: dist.get_world_size()])
        total = mine.sum()
        dist.all_reduce(total)
        return len(mine), int(total)

    assert launch(worker, num_processes=np.int64(3)) == [(3, 21), (2, 21), (2, 21)]


def test_workers_listen_on_the_loopback_interface_only(traces, monkeypatch):
    mark = traces.mark
    for interface, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address != "127.0.0.1" for a in addresses):
            monkeypatch.setenv("GLOO_SOCKET_IFNAME", interface)  # a setting of the reader's shell

    def listening():
        import psutil
        from torch import distributed as dist

        addresses = []
        dist.barrier()  # all workers are connected
        if dist.get_rank() == 0:
            for process in psutil.process_iter():
                try:
                    if process.environ().get("D2LMGPU_TEST") == mark:
                        addresses += [
                            c.laddr.ip for c in process.net_connections() if c.status == "LISTEN"
                        ]
                except psutil.Error:
                    pass
        dist.barrier()
        return addresses

    addresses, _ = launch(listening, num_processes=2)
    assert set(addresses) == {"127.0.0.1"}
    traces.assert_none(seconds=0.1)


def test_output_of_rank_0_is_shown_while_the_run_goes_on(traces, monkeypatch, tmp_path):
    seen = str(tmp_path / "seen")

    class Notebook:
        text = ""

        def write(self, text):
            self.text += text
            if "first" in text:
                Path(seen).touch()

        def flush(self):
            pass

    def worker():
        import os
        import time

        from torch import distributed as dist

        print(f"first {dist.get_rank()}")
        deadline = time.monotonic() + 20
        while not os.path.exists(seen):
            if time.monotonic() > deadline:
                raise TimeoutError("the line was not shown")
            time.sleep(0.02)
        os.write(1, b"binary \xff\xfe rubbish\n") if dist.get_rank() == 0 else None
        print(f"last {dist.get_rank()}")

    monkeypatch.setattr(sys, "stdout", Notebook())
    launch(worker, num_processes=2)
    assert sys.stdout.text == "first 0\nbinary \ufffd\ufffd rubbish\nlast 0\n"


def test_error_names_the_rank_that_raised_first_and_shows_its_traceback(traces):
    def look_up_shard(rank):
        raise ValueError(f"no data for rank {rank}")

    def worker():
        import torch
        from torch import distributed as dist

        if dist.get_rank() == 1:
            print("reading the data")
            look_up_shard(1)
        dist.all_reduce(torch.ones(2))  # fails, too, when its peer has gone

    with pytest.raises(LaunchError) as caught:
        launch(worker, num_processes=2)
    message = str(caught.value)
    assert message.startswith("Worker 1 of 2 raised ValueError: no data for rank 1")
    assert "in look_up_shard" in message and 'raise ValueError(f"no data' in message
    assert message.endswith("The end of its output:\nreading the data")
    traces.assert_none(seconds=0.1)


def test_killed_worker_is_told_in_words(traces):
    def worker():
        import os
        import signal

        import torch
        from torch import distributed as dist

        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(2))

    with pytest.raises(LaunchError, match=r"^Worker 1 of 2 was killed by SIGKILL"):
        launch(worker, num_processes=2)
    traces.assert_none(seconds=0.1)


@pytest.mark.parametrize("exit_code", [0, 3])
def test_worker_that_exits_without_a_result_is_an_error(traces, exit_code):
    def worker():
        import os
        import time

        from torch import distributed as dist

        if dist.get_rank() == 1:
            os._exit(exit_code)
        elif exit_code:
            time.sleep(1000)  # the supervisor ends it, which is not the cause

    with pytest.raises(LaunchError, match=rf"^Worker 1 of 2 ended .*exit code {exit_code}\)"):
        launch(worker, num_processes=2)
    traces.assert_none(seconds=0.1)


def test_what_was_prepared_is_used_once_and_in_the_settings_of_the_launch(traces, monkeypatch):
    prepare()
    (prepared,) = traces.processes("supervisor")
    monkeypatch.setenv("SETTING", "later")

    def worker():
        import os

        import numpy as np

        return os.getppid(), os.environ["SETTING"], np.random.rand()

    (one, two), third = launch(worker, num_processes=2), launch(worker, num_processes=1)[0]
    assert one[0] == two[0] == prepared.pid != third[0]
    assert {setting for _, setting, _ in (one, two, third)} == {"later"}
    assert one[2] != two[2], "every worker draws its own numbers"
    traces.assert_none(seconds=0.1)


def test_a_prepared_supervisor_that_was_killed_is_told(traces):
    prepare()
    (prepared,) = traces.processes("supervisor")
    prepared.kill()
    assert until(lambda: prepared.status() == psutil.STATUS_ZOMBIE)
    with pytest.raises(LaunchError, match="The supervisor of the workers ended with -9"):
        launch(print, num_processes=1)
    traces.assert_none(seconds=0.1)


def test_result_that_cannot_be_sent_back_is_an_error(traces):
    def worker():
        import threading

        return threading.Lock()

    with pytest.raises(LaunchError, match=r"^Worker 0 of 1 raised TypeError: cannot pickle"):
        launch(worker, num_processes=1)


def test_more_workers_than_devices_are_refused(traces, monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:1")
    with pytest.raises(LaunchError, match=r"DeviceError: 2 devices were asked for, there are 1"):
        launch(lambda: None, num_processes=2)


def test_what_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"^argument 2, a lock, cannot be sent .*cannot pickle"):
        launch(lambda a, b: None, 1, lock, num_processes=1)

    def holds_lock():
        return lock

    with pytest.raises(TypeError, match=r"^the function 'holds_lock' with the globals it uses"):
        launch(holds_lock, num_processes=1)


@pytest.mark.parametrize("num_processes", [0, -1, True, 1.5, "2"])
def test_number_of_processes_must_be_positive(num_processes):
    with pytest.raises(ValueError, match=rf"^num_processes={num_processes!r}: give a whole"):
        launch(print, num_processes=num_processes)


def test_processes_that_a_worker_started_end_with_it(traces):
    def worker():
        import subprocess

        stubborn = "trap '' TERM; for i in $(seq 60); do sleep 1; done"
        subprocess.Popen(["sh", "-c", stubborn], stdout=subprocess.DEVNULL)
        return "done"

    assert launch(worker, num_processes=1) == ["done"]
    traces.assert_none(seconds=2)


# A caller that is killed, at several moments and with several victims

CALLER = """
    from pathlib import Path
    from d2lmgpu.launch import launch

    def worker(folder):
        import os, signal
        from torch import distributed as dist
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path(folder, f"ready-{dist.get_rank()}").touch()
        sum(range(10**12))  # one long step of C code that never lets another thread run

    launch(worker, FOLDER, num_processes=2)
"""


@pytest.mark.parametrize(
    ("victims", "moment"),
    [
        ("caller", "supervisor starts"),
        ("caller", "workers start"),
        ("caller", "workers run"),
        ("supervisor", "workers run"),
        ("caller and supervisor", "workers run"),
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
    doomed = traces.processes("supervisor") if "supervisor" in victims else []
    if "caller" in victims:
        caller.kill()
    for process in doomed:
        process.kill()
    _, stderr = caller.communicate(timeout=60)
    traces.assert_none()
    if victims == "supervisor":
        assert "LaunchError: The supervisor of the workers ended with -9" in stderr


def test_kill_before_the_task_is_given_leaves_nothing(traces):
    program = "from d2lmgpu.launch import prepare; prepare(); input()"
    caller = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert until(lambda: traces.processes("supervisor"), seconds=60)
    caller.kill()
    caller.communicate(timeout=60)
    traces.assert_none()


# In a real Jupyter kernel


@pytest.fixture
def kernel(traces):
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(CHAPTER))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cell(client, code, on_text=lambda text: None):
    """Run a cell; return its reply and what it printed, calling ``on_text`` at each piece."""
    printed = []

    def output(message):
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])
            on_text(message["content"]["text"])

    reply = client.execute_interactive(
        textwrap.dedent(code), timeout=90, output_hook=output, allow_stdin=False
    )
    return reply["content"], "".join(printed)


DEFINE = """
    from d2lmgpu.launch import launch
    import sys
    scale = 10

    def worker(wait):
        import time
        import torch
        from torch import distributed as dist
        total = torch.tensor(scale * (dist.get_rank() + 1))
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print("sum", int(total))
        time.sleep(wait)
        return int(total)

    before = set(sys.modules)
"""
CALL = "print(launch(worker, 0, num_processes=2), 'torch' in set(sys.modules) - before)"


def test_function_of_a_notebook_interrupted_and_run_again(traces, kernel):
    manager, client = kernel
    kernel_pid = manager.provisioner.pid

    assert run_cell(client, DEFINE)[0]["status"] == "ok"
    reply, printed = run_cell(client, CALL)
    assert printed == "sum 30\n[30, 30] False\n", reply

    def interrupt(text):
        if "sum 30" in text:
            manager.interrupt_kernel()

    reply, printed = run_cell(client, "launch(worker, 1000, num_processes=2)", on_text=interrupt)
    assert reply["ename"] == "KeyboardInterrupt" and printed == "sum 30\n"
    traces.assert_none(but=[kernel_pid], seconds=1)

    reply, printed = run_cell(client, CALL)
    assert printed == "sum 30\n[30, 30] False\n", reply


def test_traceback_of_a_cell_shows_its_source(traces, kernel):
    _, client = kernel
    run_cell(client, "from d2lmgpu.launch import launch\ndef worker():\n    1 / 0  # this line")
    reply, _ = run_cell(client, "launch(worker, num_processes=2)")
    assert reply["ename"] == "LaunchError"
    assert "ZeroDivisionError: division by zero" in reply["evalue"]
    assert "1 / 0  # this line" in reply["evalue"]


def test_killed_kernel_leaves_nothing(traces, kernel):
    manager, client = kernel
    run_cell(client, DEFINE)
    client.execute("launch(worker, 1000, num_processes=2)")
    assert until(lambda: len(traces.processes("worker")) == 2, seconds=60)
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    traces.assert_none(but=[manager.provisioner.pid])
