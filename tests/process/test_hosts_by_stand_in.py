"""``launch`` on hosts without any: a stand-in for ssh runs its command here, on the loopback.

So what ssh does is under the test's control: what a login shell prints, and each host's clock.
Real hosts are in tests/cluster.
"""

import contextlib
import os
import queue
import sys
import textwrap
import threading
from types import SimpleNamespace

import pytest
from soaking import sample
from traces import until

from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.process.hosts import frames
from d2lmgpu.process.hosts.greeting import check_addresses
from d2lmgpu.process.hosts.group import MESSAGES, Link

SSH = f"""#!{sys.executable}
import os, sys
host, command = sys.argv[-2:]
shim = os.path.dirname(sys.argv[0])
print("Welcome to", host, flush=True)
if host == "locked":
    sys.exit("root@locked: Permission denied (publickey).")
environ = dict(os.environ, SSH_CONNECTION="127.0.0.1 5 127.0.0.1 22", CLOCK_OF=host)
command = command.replace("PYTHONPATH=", f"PYTHONPATH={{shim}}:")
os.execve("/bin/sh", ["sh", "-c", command], environ)
"""
CLOCKS = """
import os, time
ahead = {"early": -3600, "late": 3600}.get(os.environ.get("CLOCK_OF"), 0)
now = time.time_ns
time.time_ns = lambda: now() + ahead * 10**9
"""


@pytest.fixture
def ssh(traces, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    (folder / "sitecustomize.py").write_text(textwrap.dedent(CLOCKS))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return traces


def rank_and_place():
    from torch import distributed as dist

    total = torch_sum(dist.get_rank())
    print("rank", dist.get_rank())
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    return [int(os.environ[name]) for name in names], total


def torch_sum(number):
    import torch
    from torch import distributed as dist

    data = torch.tensor([number])
    dist.all_reduce(data)
    return int(data)


def test_results_come_by_rank_whatever_a_login_shell_prints(ssh, capfd):
    results = launch(rank_and_place, hosts=["a", "b"], num_processes=2)
    numbers = [[0, 0, 4, 2], [1, 1, 4, 2], [2, 0, 4, 2], [3, 1, 4, 2]]
    assert results == [(of_rank, 6) for of_rank in numbers]
    assert capfd.readouterr().out == "rank 0\n"
    ssh.assert_none(seconds=2)


@pytest.mark.parametrize(
    "clock, rank", sample(2, [("early", 0), ("late", 1), ("early", 1), ("late", 0)])
)
def test_the_cause_is_named_though_the_hosts_clocks_differ(ssh, clock, rank):
    def worker():
        from torch import distributed as dist

        if dist.get_rank() == rank:
            raise ValueError("the cause")
        torch_sum(1)

    with pytest.raises(LaunchError, match=rf"^Worker {rank} of 2, on .*the cause"):
        launch(worker, hosts=["here", clock], num_processes=1)
    ssh.assert_none(seconds=2)


def test_a_host_that_lets_nobody_in_is_named_with_ssh_s_words(ssh):
    with pytest.raises(LaunchError, match=r"^Host locked cannot be used: .*Permission denied"):
        launch(print, hosts=["a", "locked"], num_processes=1)
    ssh.assert_none()


def test_without_ssh_it_says_so(traces, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="ssh, which is not installed"):
        launch(print, hosts=["a"], num_processes=1)


def test_loopback_is_refused_where_another_host_would_look_for_it():
    def host(name, address):
        return SimpleNamespace(host=name, hello={"address": address})

    near, far = host("localhost", "127.0.0.1"), host("n2", "10.0.0.2")
    check_addresses([near])
    check_addresses([near, near])  # all of them are here
    check_addresses([far, far])
    with pytest.raises(LaunchError, match="Host localhost was reached"):
        check_addresses([far, near])


@pytest.mark.parametrize("kind", [frames.OUTPUT, frames.ERRORS, frames.EVENT])
def test_a_host_waits_while_nobody_takes_what_it_says(kind):
    inbox = queue.Queue(MESSAGES)
    link, (reader, writer) = Link("a", inbox), os.pipe()
    link._process = SimpleNamespace(stdout=os.fdopen(reader, "rb", buffering=0))
    os.set_blocking(writer, False)
    os.write(writer, frames.FIRST)
    thread = threading.Thread(target=link._read, daemon=True)
    thread.start()
    message, sent = kind + (40_000).to_bytes(4, "big") + bytes(40_000), 0
    rest = message

    def is_full():
        nonlocal sent, rest
        with contextlib.suppress(BlockingIOError):
            while sent < 1 << 26:
                written = os.write(writer, rest)
                sent, rest = sent + written, rest[written:] or message
        return sent >= 1 << 26 or inbox.full()

    assert until(is_full) and sent < 1 << 24
    link._closing.set()  # what is still said is thrown away, so that the host can end
    os.set_blocking(writer, True)
    while sent % len(message) or sent < 1 << 25:
        written = os.write(writer, rest)
        sent, rest = sent + written, rest[written:] or message
    os.close(writer)
    thread.join()
    assert inbox.qsize() == MESSAGES
