"""Whoever is interrupted or killed: within ten seconds all has ended, on every host."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest
from processes import below
from soaking import sample

SECONDS = 10
CALLER = textwrap.dedent("""
    import sys
    from d2lmgpu.launch import LaunchError, Slurm, launch

    def worker():
        import os, tempfile, time
        import torch
        from torch import distributed as dist
        tempfile.mkdtemp(prefix="d2lmgpu-")
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        print("ready", flush=True)
        while True:
            dist.all_reduce(torch.ones(1000))

    try:
        print("started", flush=True)
        launch(worker, hosts=eval(sys.argv[1]), num_processes=2)
    except (KeyboardInterrupt, LaunchError) as error:
        print("ended", type(error).__name__, error, flush=True)
""")


LIMIT = 60  # seconds


class Caller:
    """A program that launches on two hosts, and the folder in which it leaves files."""

    def __init__(self, folder, hosts='["n1", "n2"]'):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", CALLER, hosts],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        # A run that hangs is a test that fails. Beside other programs Slurm takes most of a minute
        # to begin a job, so what comes after has a limit of its own.
        self.limit = threading.Timer(LIMIT, self.process.kill)
        self.limit.start()
        self.until("started")
        self.limit.cancel()
        self.limit = threading.Timer(LIMIT, self.process.kill)
        self.limit.start()

    def until(self, word):
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        end = "ended by this test" if self.limit.finished.is_set() else "it ended by itself"
        raise AssertionError(f"no {word!r} in {LIMIT} s, {end}: {self.process.stderr.read()}")

    def left(self):
        """Below the caller, and in its folder."""
        children = (
            psutil.Process(self.process.pid).children()
            if psutil.pid_exists(self.process.pid) and self.process.poll() is None
            else []
        )
        return [*children, *self.folder.glob("d2lmgpu-*")]


@pytest.fixture
def caller(two_hosts, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    caller = Caller(folder)
    yield caller
    caller.limit.cancel()
    caller.process.kill()
    caller.process.communicate()


def kill_worker(cluster, caller):
    (agent,) = cluster.agents("n2")
    (guard,) = agent.children()
    below(guard)[1][1].kill()


def kill_host(cluster, caller):
    cluster.first_process("n2").kill()


def cut(cluster, caller):
    cluster.link("n2", upward=False)


def kill_agent(cluster, caller):
    (agent,) = cluster.agents("n2")
    agent.kill()


def kill_ssh(cluster, caller):
    random.Random(0).choice(psutil.Process(caller.process.pid).children()).kill()


def interrupt(cluster, caller):
    caller.process.send_signal(signal.SIGINT)


WORDS = {
    kill_worker: "LaunchError Worker 3 of 4, on n2, was killed by SIGKILL",
    kill_host: "LaunchError Host n2 was lost: ",
    cut: "LaunchError Host n2 was lost: nothing was heard from it for 6 s",
    kill_agent: "LaunchError Host n2 was lost: ",
    kill_ssh: "LaunchError Host n",
    interrupt: "KeyboardInterrupt",
}


HARMS = sample({*WORDS} - {kill_ssh}, WORDS)


@pytest.mark.parametrize("harm", HARMS)
def test_the_end_is_told_in_time_and_nothing_is_left(two_hosts, caller, harm):
    caller.until("ready")
    harm(two_hosts, caller)
    start = time.monotonic()
    assert caller.until("ended").startswith(f"ended {WORDS[harm]}")
    assert time.monotonic() - start < SECONDS
    gone(two_hosts, caller, start)


def test_a_killed_caller_ends_all_hosts(two_hosts, caller):
    caller.until("ready")
    caller.process.kill()
    start = time.monotonic()
    caller.process.wait()
    gone(two_hosts, caller, start)


@pytest.mark.parametrize("seed", sample(2, range(4)))
def test_an_interrupt_or_a_kill_while_it_starts(two_hosts, caller, seed):
    chance = random.Random(seed)
    time.sleep(4 * chance.random())
    number = (signal.SIGINT, signal.SIGKILL)[seed % 2]
    caller.process.send_signal(number)
    start = time.monotonic()
    caller.process.communicate(timeout=SECONDS)
    gone(two_hosts, caller, start)


def gone(cluster, caller, start):
    while left := cluster.left() + caller.left():
        assert time.monotonic() - start < SECONDS, left
        time.sleep(0.05)
