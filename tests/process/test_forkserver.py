"""One process imports PyTorch for several launches, which notice nothing else of it."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import psutil
import pytest
from traces import IMPORT, until

from d2lmgpu import launch as launching
from d2lmgpu.launch import LaunchError, launch, prepare
from d2lmgpu.process import forks, forkserver, supervisors
from d2lmgpu.process.forks import can_fork
from d2lmgpu.process.forkserver import ForkServer

pytestmark = pytest.mark.skipif(not can_fork(), reason="no descriptors of processes: not on Linux")


def root():
    """The process below the caller from which this worker comes, and a number that it draws."""
    import os

    import numpy as np
    import psutil

    worker = psutil.Process()
    (caller,) = (p for p in worker.parents() if str(p.pid) == os.environ["CALLER"])
    line = [worker, *worker.parents()]
    return line[line.index(caller) - 1].pid, float(np.random.rand())


@pytest.fixture(autouse=True)
def caller(monkeypatch):
    monkeypatch.setenv("CALLER", str(os.getpid()))


def roots(times=1):
    return [launch(root, num_processes=1)[0][0] for _ in range(times)]


def test_launches_come_from_one_process_each_with_its_own_numbers(traces):
    drawn = {launch(root, num_processes=2)[rank] for _ in range(2) for rank in range(2)}
    assert len({number for _, number in drawn}) == 4
    ((pid,),) = [{pid for pid, _ in drawn}]
    assert [server.pid for server in traces.processes("fork server")] == [pid]
    traces.assert_none(seconds=0.1)
    assert psutil.Process(pid).children() == [], "nobody is left to be asked how it has ended"


def test_what_is_prepared_serves_the_next_launch_in_the_settings_of_that(traces, monkeypatch):
    prepare()
    assert until(lambda: traces.processes("fork server"))
    (prepared,) = traces.processes("fork server")
    monkeypatch.setenv("SETTING", "later")

    def worker():
        import os

        return os.environ["SETTING"], root()[0]

    assert launch(worker, num_processes=1) == [("later", prepared.pid)]
    (another,) = roots()
    assert another != prepared.pid and until(lambda: not prepared.is_running())


def changed_variable(monkeypatch, folder):
    monkeypatch.setenv("OMP_DISPLAY_ENV", "false")


def changed_import_path(monkeypatch, folder):
    monkeypatch.syspath_prepend(str(folder))


def changed_umask(monkeypatch, folder):
    before = os.umask(0o027)
    return lambda: os.umask(before)


def changed_cores(monkeypatch, folder):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    return lambda: os.sched_setaffinity(0, before)


def changed_limit(monkeypatch, folder):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "change",
    [
        changed_variable,
        changed_import_path,
        changed_umask,
        pytest.param(changed_cores, marks=pytest.mark.needs("cores")),
        changed_limit,
    ],
)
def test_in_other_circumstances_there_is_another_one(traces, monkeypatch, tmp_path, change):
    def seen():
        import os
        import resource
        import sys

        umask = os.umask(0)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        return os.environ.get("OMP_DISPLAY_ENV"), sys.path, umask, os.sched_getaffinity(0), files

    def circumstances():
        umask = os.umask(0)
        os.umask(umask)
        import resource

        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        return (
            os.environ.get("OMP_DISPLAY_ENV"),
            sys.path,
            umask,
            os.sched_getaffinity(0),
            files,
        )

    (before,) = roots()
    undo = change(monkeypatch, tmp_path)
    try:
        assert launch(seen, num_processes=1) == [circumstances()]
        (after,) = roots()
    finally:
        if undo:
            undo()
    assert after != before
    assert until(lambda: [p.pid for p in traces.processes("fork server")] == [after])


def test_one_that_was_killed_is_replaced(traces):
    (first,) = roots()
    server = launching._SUPERVISORS._server
    os.kill(first, signal.SIGKILL)
    assert until(lambda: not server.serves)  # who waits for its end may not have heard of it yet
    assert roots(2) == [roots()[0]] * 2
    assert roots() != [first]


def test_killed_while_workers_run_it_takes_them_along(traces, tmp_path):
    ready = tmp_path / "ready"

    def worker():
        import time

        ready.touch()
        time.sleep(1000)

    def kill():
        assert until(ready.exists, IMPORT)
        (server,) = traces.processes("fork server")
        server.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(LaunchError):
        launch(worker, num_processes=1)
    thread.join()
    traces.assert_none(seconds=5)


def test_two_threads_launch_at_once(traces):
    pids = []

    def both():
        pids.extend(roots(2))

    threads = [threading.Thread(target=both) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 4 and len(set(pids)) == 1
    traces.assert_none(seconds=0.1)


def test_another_one_leaves_the_runs_of_the_first_alone(traces, monkeypatch, tmp_path):
    ready, done = tmp_path / "ready", tmp_path / "done"
    results = []

    def worker():
        import time

        ready.touch()
        while not done.exists():
            time.sleep(0.01)
        return "finished"

    thread = threading.Thread(target=lambda: results.extend(launch(worker, num_processes=2)))
    thread.start()
    assert until(ready.exists, IMPORT)
    (first,) = traces.processes("fork server")
    monkeypatch.setenv("SETTING", "later")
    (second,) = roots()
    assert second != first.pid and first.is_running()
    done.touch()
    thread.join()
    assert results == ["finished"] * 2
    assert until(lambda: [p.pid for p in traces.processes("fork server")] == [second])


def test_a_fork_of_the_caller_has_its_own(traces):
    program = """
        import os
        import d2lmgpu.launch as launching
        from d2lmgpu.launch import launch

        def root(caller):
            import psutil
            line = [p.pid for p in psutil.Process().parents()]
            return line[line.index(caller) - 1]

        def launched():
            return launch(root, os.getpid(), num_processes=1)[0]

        first = launched()
        reader, writer = os.pipe()
        with launching._SUPERVISORS._lock:  # as another thread may
            child = os.fork()
        if not child:
            os.write(writer, str(launched()).encode())
            os._exit(0)
        theirs = int(os.read(reader, 20))
        os.waitpid(child, 0)
        print(first, theirs, launched(), flush=True)
        input()
    """
    caller = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    first, theirs, again = map(int, caller.stdout.readline().split())
    assert first == again != theirs
    assert until(lambda: [p.pid for p in traces.processes("fork server")] == [first])
    caller.communicate("\n")
    traces.assert_none(caller_ended=True)


def test_one_that_nobody_needs_ends(traces):
    server = ForkServer((), dict(os.environ), idle=0.5)
    assert server.serves
    assert until(lambda: not server.serves)
    assert not traces.processes("fork server")
    with pytest.raises(ConnectionError):
        server.fork("/tmp", [], [])


def test_without_descriptors_of_processes_supervisors_start_by_themselves(traces, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr("d2lmgpu.launch._SUPERVISORS", supervisors.Supervisors())
    assert launch(lambda: np.pi, num_processes=2) == [np.pi] * 2
    assert not traces.processes("fork server")
    traces.assert_none(seconds=0.1)


def test_one_that_cannot_import_is_tried_once_and_again_when_things_have_changed(
    traces, monkeypatch
):
    started = []

    class Counted(ForkServer):
        def __init__(self, *arguments):
            started.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(supervisors, "ForkServer", Counted)
    monkeypatch.setattr("d2lmgpu.launch._SUPERVISORS", supervisors.Supervisors())
    with monkeypatch.context() as broken:
        broken.setattr(forkserver, "__name__", "d2lmgpu.process.no_such_module")
        for _ in range(2):
            assert launch(lambda: np.pi, num_processes=2) == [np.pi] * 2
    assert len(started) == 1 and not traces.processes("fork server")
    monkeypatch.setenv("SETTING", "later")
    (root,) = roots()
    assert [server.pid for server in traces.processes("fork server")] == [root]


def test_an_interrupt_before_the_answer_costs_that_process_alone(traces, monkeypatch):
    (first,) = roots()
    recv_fds = forks.socket.recv_fds

    def interrupted(*arguments):
        monkeypatch.setattr(forks.socket, "recv_fds", recv_fds)
        raise KeyboardInterrupt

    monkeypatch.setattr(forks.socket, "recv_fds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(root, num_processes=1)
    traces.assert_none()
    (second,) = roots()
    assert second != first
