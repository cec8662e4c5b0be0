"""Why ``launch`` failed is said, where the reason was easily lost."""

import builtins
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest
from soaking import sample

from d2lmgpu.data.files import DATA_SETS, DataError, locate
from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.process import child
from d2lmgpu.process.failures import _unpickled
from d2lmgpu.process.settings import PythonError
from d2lmgpu.process.supervisor import lead_a_group
from d2lmgpu.process.supervisors import Supervisors


def failure(fn, num_processes=2):
    with pytest.raises(LaunchError) as caught:
        launch(fn, num_processes=num_processes)
    return str(caught.value)


# What a worker may do to the place where its result goes, and the reason that must be named.


def allows_no_large_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def allows_no_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def removes_its_folder():
    shutil.rmtree(tempfile.gettempdir())


def becomes_somebody_else():
    os.setuid(65534) if os.getuid() == 0 else os.chmod(tempfile.gettempdir(), 0)


PLACES = [
    (allows_no_large_files, "File too large"),
    (removes_its_folder, "No such file"),
    (allows_no_descriptors, "Too many open files"),
    (becomes_somebody_else, "Permission denied"),
]


@pytest.mark.parametrize("harm, reason", sample(1, PLACES[:3]))
def test_a_result_that_cannot_be_left_is_said_with_its_reason(traces, harm, reason):
    def worker():
        harm()
        return b"x" * 5000

    message = failure(worker, 1)
    assert message.startswith("Worker 0 of 1 could not leave its result (5,0") and reason in message
    traces.assert_none()


@pytest.mark.parametrize("harm, reason", sample(1, PLACES[2:]))
def test_an_error_that_cannot_be_left_is_said_all_the_same(traces, harm, reason):
    def worker():
        harm()
        raise KeyError("the cause")

    message = failure(worker, 1)
    assert message.startswith("Worker 0 of 1 raised KeyError: 'the cause' (in worker, line ")
    assert "(its traceback could" in message
    assert reason in message
    traces.assert_none()


def breaks_json():
    json.dumps = json.loads = None


def breaks_the_exit():
    os._exit = lambda code: None


def breaks_writing():
    os.write = sys.exit = None


def breaks_time():
    time.time_ns = time.time = None


@pytest.mark.parametrize(
    "harm", sample(1, [breaks_json, breaks_the_exit, breaks_writing, breaks_time])
)
def test_a_worker_that_replaces_functions_of_python_ends_with_its_result_or_error(traces, harm):
    def worker():
        import torch.distributed as dist

        harm()
        return 7 // (1 - dist.get_rank())

    assert launch(worker, num_processes=1) == [7]
    assert failure(worker).startswith("Worker 1 of 2 raised ZeroDivisionError")
    traces.assert_none()


@pytest.mark.parametrize("name", ["isinstance", "bytearray", "len"])
def test_a_worker_that_replaces_what_everything_needs_shows_its_error(traces, name):
    def worker():
        setattr(builtins, name, None)
        raise ValueError("the cause")

    message = failure(worker, 1)
    assert message.startswith("Worker 0 of 1 ") and "ValueError: the cause" in message
    traces.assert_none()


def test_the_thread_that_looks_for_hangs_says_nothing_of_what_a_worker_has_replaced(capfd):
    """Its traceback ran into the worker's own, letter by letter."""

    def worker():
        builtins.len = None
        time.sleep(1)  # it looks five times a second
        raise ValueError("the cause")

    assert "ValueError: the cause" in failure(worker, 1)
    assert "hang-log" not in capfd.readouterr().err


class Ends:
    """Ends whoever reads it."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def ends_softly(kind):
    raise kind("no")


def test_a_result_that_ends_its_reader_is_refused(traces):
    with pytest.raises(LaunchError, match=r"^Worker 0 returned a Ends, which cannot be used"):
        launch(lambda: Ends(sys.exit, 3), num_processes=1)
    for call in ((ends_softly, SystemExit), (ends_softly, GeneratorExit), (int, "one")):
        with pytest.raises(LaunchError, match=r"^Worker 5 returned a Ends, which cannot be used"):
            _unpickled("5", b"Ends\n" + pickle.dumps(Ends(*call)))
    traces.assert_none()


# Peers that are not there any more.


def returns_early(rank):
    import torch
    from torch import distributed as dist

    if dist.get_rank() != rank:
        dist.all_reduce(torch.ones(2))  # waits


def has_fewer_batches(rank):
    import torch
    from torch import distributed as dist

    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    for _ in range(3 + (dist.get_rank() != rank)):
        net(torch.ones(4, 2)).sum().backward()  # waits


def leaves_the_group(rank):
    from torch import distributed as dist

    if dist.get_rank() == rank:
        return dist.destroy_process_group()
    dist.barrier()  # waits


@pytest.mark.parametrize(
    "worker, rank",
    sample(1, [(has_fewer_batches, 1), (returns_early, 0), (leaves_the_group, 0)]),
)
def test_a_peer_that_had_returned_is_named_with_the_line_that_waited(traces, worker, rank):
    first, second, *_ = failure(lambda: worker(rank)).splitlines()
    assert first.startswith(f"Worker {1 - rank} of 2 waited for its peers in ")
    assert first.endswith("# waits`") and f" of {os.path.basename(__file__)}: `" in first
    assert second.startswith(f"Worker {rank} had returned by then")
    assert second.endswith("or calls with smaller tensors.")
    traces.assert_none()


def begins_again():
    from torch import distributed as dist

    dist.init_process_group("gloo")


def begins_again_by_its_environment():
    import os

    from torch import distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    dist.init_process_group(init_method="env://")


def begins_again_in_another_function():
    begins_again()


@pytest.mark.parametrize(
    "worker",
    sample(1, [begins_again_in_another_function, begins_again, begins_again_by_its_environment]),
)
def test_a_function_that_brings_its_workers_together_again(traces, worker):
    message = failure(worker)
    assert "launch have one already: leave this call out. (in " in message
    assert f"in {worker.__name__}" in message
    traces.assert_none()


def test_several_peers_that_had_returned_are_named(traces):
    def worker():
        import torch
        from torch import distributed as dist

        if dist.get_rank() == 3:
            dist.recv(torch.ones(1), 0)

    assert "\nWorkers 0 and 1 and 2 had returned by then" in failure(worker, 4)
    traces.assert_none()


def raises():
    raise KeyError("the cause")


def exits():
    os._exit(3)


def is_ended():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    "end, words, rank",
    [(raises, "raised KeyError", 0), (exits, "exit code 3", 1), (is_ended, "SIGTERM", 0)],
)
def test_a_peer_that_failed_is_named_not_the_one_that_waited_for_it(traces, end, words, rank):
    def worker():
        from torch import distributed as dist

        if dist.get_rank() == rank:
            end()
        dist.barrier()

    message = failure(worker)
    assert message.startswith(f"Worker {rank} of 2") and words in message.splitlines()[0]
    traces.assert_none()


def raises_from():
    try:
        waits()
    except RuntimeError as error:
        raise ValueError("epoch failed") from error


def raises_in_an_except():
    try:
        waits()
    except RuntimeError:
        try:
            {}["log"]
        except KeyError:
            sys.exit("give up")


def raises_at_last():
    try:
        waits()
    finally:
        raise OSError("no place for a checkpoint")


def waits():
    from torch import distributed as dist

    dist.barrier()


@pytest.mark.parametrize("raising", sample(1, [raises_from, raises_in_an_except, raises_at_last]))
@pytest.mark.parametrize(
    "end, words",
    [(exits, "ended without a result (exit code 3)"), (raises, "raised KeyError: 'the cause'")],
)
def test_what_is_raised_because_a_peer_was_lost_hides_no_cause(traces, raising, end, words):
    def worker():
        from torch import distributed as dist

        end() if dist.get_rank() else raising()

    assert failure(worker).startswith(f"Worker 1 of 2 {words}")
    traces.assert_none()


def test_what_is_raised_because_a_peer_had_returned_is_shown_in_whole(traces):
    def worker():
        from torch import distributed as dist

        if not dist.get_rank():
            raises_from()

    message = failure(worker)
    assert message.startswith("Worker 0 of 2 waited for its peers in ")
    assert "dist.barrier()`\nWorker 1 had returned by then" in message
    assert message.endswith("ValueError: epoch failed")
    traces.assert_none()


# What is lacking: files, processes, memory's settings, a folder.


@pytest.fixture
def many_files():
    """More open files in this process than select can tell apart."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    files = [open(os.devnull) for _ in range(1100)]  # noqa: SIM115
    yield
    for file in files:
        file.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("num_processes", sample(1, [3, 1, 2]))
def test_a_caller_with_many_open_files(traces, many_files, num_processes):
    assert launch(len, [1], num_processes=num_processes) == [1] * num_processes
    traces.assert_none()


@pytest.mark.parametrize("number", [129, 1000, 10**6, 2**40])
@pytest.mark.parametrize("name", ["num_processes", "num_servers"])
def test_more_workers_than_there_can_be_devices_are_refused_at_once(traces, number, name):
    numbers = {"num_processes": 1, name: number}
    with pytest.raises(ValueError, match=f"^{name}={number}: give at most 128"):
        launch(len, [1], **numbers)
    assert not traces.processes()


COUNTS_FORKS = """
import os
def note():
    with open({file!r}, "a") as file:
        file.write("fork\\n")
    {more}
os.register_at_fork(before=note)
"""


@pytest.fixture
def forks(traces, monkeypatch, tmp_path):
    """Begin to count what the processes of ``launch`` fork, each of which does ``more``, too."""

    def count(more="pass"):
        file = tmp_path / "forks"
        code = COUNTS_FORKS.format(file=str(file), more=more)
        (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        return lambda: len(file.read_text().split())

    return count


@pytest.mark.parametrize("number", [5, 17, 128])
def test_more_workers_than_devices_are_refused_before_one_is_forked(forks, traces, number):
    counted = forks()
    message = failure(len, number)
    assert message.startswith(f"Worker 0 of {number} raised d2lmgpu.machine.devices.DeviceError: ")
    assert f"{number} devices were asked for, there are 4" in message
    assert counted() == 3  # guard and supervisor, and the process that counts the devices
    traces.assert_none()


@pytest.mark.parametrize("last", sample(1, [2, 1, 3]))
def test_no_worker_is_forked_once_the_guard_has_gone(forks, traces, last):
    file = str(traces.folder / "forks")
    # Its child has another parent once it has gone, and the end of its pipe is closed before that.
    gone = "[*iter(lambda: os.getppid() == guard, False)]"
    counted = forks(
        f"if len(open({file!r}).read().split()) == {3 + last}: "
        f"guard = os.getppid(); os.kill(guard, 9); {gone}"
    )
    with pytest.raises(LaunchError, match="The supervisor of the workers and its guard were ended"):
        launch(len, [1], num_processes=4)
    assert counted() == 3 + last
    traces.assert_none()


@pytest.mark.parametrize("number", sample(1, [2, 1, 3]))
def test_a_worker_that_cannot_be_forked_is_named(forks, traces, number):
    forks()
    (traces.folder / "sitecustomize.py").write_text(f"""
import errno, os
fork, forked = os.fork, []
def limited():
    if len(forked) == {2 + number}:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    forked.append(1)
    return fork()
os.fork = limited
""")
    message = failure(len, 3)
    assert message.startswith(
        f"Worker {number - 1} of 3 could not be started: Resource temporarily"
    )
    assert "ulimit -u" in message
    traces.assert_none()


@pytest.mark.parametrize(
    "error",
    [
        BlockingIOError(11, "Resource temporarily unavailable"),
        OSError(12, "Cannot allocate memory"),
        FileNotFoundError(2, "No such file"),
    ],
)
def test_a_supervisor_that_cannot_be_started_is_an_error_of_ours(traces, monkeypatch, error):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("d2lmgpu.launch._SUPERVISORS", Supervisors())
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(child.subprocess, "Popen", refuse)
    with pytest.raises(PythonError, match=f"^No worker process can be started: .*{error.strerror}"):
        launch(len, [1], num_processes=1)
    assert len(os.listdir("/proc/self/fd")) == before
    traces.assert_none()


@pytest.mark.parametrize("number", [13, 30, 1])
def test_where_the_system_forbids_to_say_who_goes_first_workers_start(monkeypatch, number):
    def forbidden(path, *mode, **named):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("builtins.open", forbidden)
    with subprocess.Popen(["true"], preexec_fn=lead_a_group) as process:
        pass
    assert process.returncode == 0


def test_a_folder_that_was_removed_is_said(traces, monkeypatch, tmp_path):
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        folder.rmdir()
        with pytest.raises(PythonError, match="The folder in which this Python runs was removed"):
            launch(len, [1], num_processes=1)
    traces.assert_none()


@pytest.mark.parametrize("value", sample(1, ["abc", "-1", ""]))
def test_a_seed_that_is_none_names_its_variable(traces, monkeypatch, value):
    monkeypatch.setenv("D2LMGPU_SEED", value)
    assert f"D2LMGPU_SEED='{value}': give a whole number" in failure(len)
    traces.assert_none()


@pytest.mark.parametrize("given", ["~nosuchuser/x", "~nobody-here", "/" + "x/" * 2500, "y" * 5000])
def test_a_data_folder_that_is_none_names_its_variable(given):
    with pytest.raises(DataError, match=r"^D2LMGPU_DATA=") as caught:
        locate(DATA_SETS["mnist"], given, None)
    assert len(str(caught.value)) < 1500 and given[:100] in str(caught.value)


@pytest.mark.parametrize(
    "name, locale",
    sample(1, [(b"umlaut-\xfc", "C.UTF-8"), ("ümlaut".encode(), "C"), (b"\xff\xfe", "C")]),
)
def test_a_temporary_folder_with_any_bytes_in_its_name(traces, tmp_path, name, locale):
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(folder)
    code = "from d2lmgpu.launch import launch; print(launch(len, [1], num_processes=2))"
    environ = os.environb | {b"TMPDIR": folder, b"LC_ALL": locale.encode(), b"PYTHONUTF8": b"0"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout == "[1, 1]\n", done.stderr
    traces.assert_none()


@pytest.mark.parametrize("limit", [1, 60, 3600])
def test_a_limit_of_cpu_time_is_named_beside_memory(monkeypatch, limit):
    assert "CPU" not in child.end_in_words(-signal.SIGKILL)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    words = child.end_in_words(-signal.SIGKILL)
    assert f"{limit} s of CPU time" in words and "memory" in words
    assert "CPU time" in child.end_in_words(-signal.SIGXCPU)


def test_a_worker_that_used_up_its_cpu_time(traces):
    def worker():
        resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
        while True:
            pass

    assert (
        failure(worker, 1) == "Worker 0 of 1 was killed by SIGXCPU: its CPU time was used up "
        "(ulimit -t)"
    )
    traces.assert_none()


def test_long_errors_and_long_lines_are_cut(traces):
    text = "é" * 3_000_000

    def worker():
        import torch.distributed as dist

        if dist.get_rank() == 1:
            print(text)
            raise ValueError(text)
        dist.barrier()

    message = failure(worker)
    assert message.startswith("Worker 1 of 2 raised ValueError: " + text[:100])
    assert len(message) < 40_000 and "bytes left out" in message
    assert "The end of its output:" in message
    traces.assert_none()
