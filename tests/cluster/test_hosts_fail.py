"""What fails on another host is told by rank and host, the cause before its consequences."""

import os
import re
import signal
import subprocess
import sys
import threading
from importlib.metadata import files, version
from pathlib import Path

import pytest
from soaking import sample, soaked

import d2lmgpu
from d2lmgpu.launch import LaunchError, launch

HOSTS = ["n1", "n2"]


def fails(case):
    import time

    import torch
    from torch import distributed as dist

    rank = dist.get_rank()
    print(f"rank {rank} begins")
    if rank == case.get("rank"):
        if "signal" in case:
            os.kill(os.getpid(), case["signal"])
        raise ValueError("my shard is empty")
    if case.get("wait"):
        time.sleep(1000)
    while True:
        dist.all_reduce(torch.ones(1000))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"rank": 3}, "Worker 3 of 4, on n2, raised ValueError: my shard is empty"),
        ({"rank": 2, "signal": signal.SIGKILL}, "Worker 2 of 4, on n2, was killed by SIGKILL"),
        *soaked(
            ({"rank": 0}, "Worker 0 of 4, on n1, raised ValueError: my shard is empty"),
            (
                {"rank": 2, "wait": True},
                "Worker 2 of 4, on n2, raised ValueError: my shard is empty",
            ),
            ({"rank": 1, "signal": signal.SIGSEGV}, "Worker 1 of 4, on n1, was killed by SIGSEGV"),
        ),
    ],
)
def test_the_cause_is_told_by_rank_and_host(cluster, case, words):
    with pytest.raises(LaunchError) as caught:
        launch(fails, case, hosts=HOSTS, num_processes=2)
    message = str(caught.value)
    assert message.startswith(words)
    if "signal" not in case:
        assert 'raise ValueError("my shard is empty")' in message  # the source, from here
    if case["rank"]:
        assert message.endswith(f"rank {case['rank']} begins")
    assert cluster.left_at_last() == []


def test_a_host_that_does_not_answer(cluster):
    cluster.link("n2", upward=False)
    try:
        with pytest.raises(LaunchError, match=r"^Host n2 cannot be used: ssh: connect to host"):
            launch(print, hosts=HOSTS, num_processes=1)
    finally:
        cluster.link("n2", upward=True)
    with pytest.raises(LaunchError, match=r"^Host nowhere\.invalid cannot be used: .*resolve"):
        launch(print, hosts=["nowhere.invalid"], num_processes=1)
    assert cluster.left_at_last() == []


@pytest.mark.parametrize("what", sample(2, ["torch", "package", "Python", "folder"]))
def test_a_host_that_has_another_version(two_hosts, what, tmp_path, monkeypatch):
    """On n2 another file, or none, is mounted over the one that both hosts share."""
    own = tmp_path / "own"
    if what == "torch":
        (there,) = [f.locate() for f in files("torch") if str(f).endswith("dist-info/METADATA")]
        own.write_text(there.read_text().replace(f"Version: {version('torch')}", "Version: 2.1"))
        text = f"has torch 2.1, here it is {version('torch')}"
    elif what == "package":
        there = Path(d2lmgpu.__file__)
        own.write_text(there.read_text() + "\n")
        text = "has d2lmgpu "
    elif what == "Python":
        there, text = os.path.realpath(sys.executable), "Permission denied"
        own.write_text("")
    else:
        own.mkdir()
        work = tmp_path / "work" / "notebook"
        work.mkdir(parents=True)
        monkeypatch.chdir(work)
        there, text = work.parent, "notebook: No such file or directory"
    first = two_hosts.first_process("n2").pid
    subprocess.run(["nsenter", "-t", str(first), "-m", "mount", "--bind", own, there], check=True)
    with pytest.raises(LaunchError, match=f"^Host n2 .*{re.escape(text)}"):
        launch(print, hosts=HOSTS, num_processes=1)
    assert two_hosts.left_at_last() == []


def test_what_cannot_be_sent_is_named_and_nothing_starts(cluster):
    with pytest.raises(TypeError, match=r"^The argument 1 is of type lock"):
        launch(print, threading.Lock(), hosts=HOSTS, num_processes=1)


def test_what_cannot_come_back_is_named(cluster):
    with pytest.raises(LaunchError, match=r"^Worker [01] of 2, on n[12], .*returned a lock"):
        launch(threading.Lock, hosts=HOSTS, num_processes=1)
    assert cluster.left_at_last() == []
