"""launch on Slurm's nodes: the same worker, and a job that ends with it, however it ends."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import psutil
import pytest
from soaking import sample, soaked
from test_breaking import until
from test_hosts_end import Caller, gone, interrupt, kill_worker
from test_hosts_fail import fails
from test_on_hosts import where_am_i

from d2lmgpu.launch import LaunchError, Slurm, launch

SECONDS = 10


def test_the_worker_runs_on_the_nodes_unchanged(slurm, capfd):
    results = launch(where_am_i, "hello", hosts=Slurm(nodes=2, gpus=2, time=5), num_processes=2)
    hosts = ["n1", "n1", "n2", "n2"]
    assert results == [
        (rank, 4, host, (f"cpu:{rank % 2}",) * 2, 6) for rank, host in enumerate(hosts)
    ]
    assert capfd.readouterr().out == "hello from rank 0\n"
    assert slurm.left_at_last() == []


def test_a_held_job_is_used_and_kept(slurm):
    def worker():
        return os.environ["CUDA_VISIBLE_DEVICES"]

    slurm.ask("salloc", "--no-shell", "--nodes=2", "--gres=gpu:1", "--time=5")
    (job,) = slurm.jobs()
    number = int(job.split()[0])
    try:
        assert launch(worker, hosts=Slurm(job=number), num_processes=1) == ["0", "0"]
        assert slurm.jobs() == [f"{number} RUNNING"]
    finally:
        slurm.ask("scancel", number)
    assert slurm.left_at_last() == []
    with pytest.raises(LaunchError, match=f"^Job {number} is cancelled"):
        launch(print, hosts=Slurm(job=number), num_processes=1)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"rank": 3}, "Worker 3 of 4, on n2, raised ValueError: my shard is empty"),
        *soaked(
            ({"rank": 1, "signal": signal.SIGSEGV}, "Worker 1 of 4, on n1, was killed by SIGSEGV")
        ),
    ],
)
def test_the_cause_is_told_by_rank_and_host(slurm, case, words):
    with pytest.raises(LaunchError) as caught:
        launch(fails, case, hosts=Slurm(nodes=2), num_processes=2)
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith(f"rank {case['rank']} begins")
    assert slurm.left_at_last() == []


def test_salloc_and_srun_listen_on_the_bridge_only(slurm):
    def watch():
        while not ended.is_set():
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    for port in process.net_connections("inet"):
                        if port.status == "LISTEN":
                            seen.add((process.name(), port.laddr.ip))

    def worker():
        import time

        time.sleep(0.5)

    seen, ended = set(), threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    launch(worker, hosts=Slurm(nodes=2), num_processes=1)
    ended.set()
    thread.join()
    (bridge,) = psutil.net_if_addrs()[slurm.state["bridge"]][:1]
    for program in ("salloc", "srun"):
        assert {ip for name, ip in seen if name == program} == {bridge.address}


def cancel(slurm, caller):
    slurm.ask("scancel", "--name=launch")


def kill_slurmd(slurm, caller):
    """Kill it, and wait until Slurm counts the node as lost: what runs there goes on till then."""
    slurm.slurmd("n2").kill()
    while "down" not in slurm.ask("sinfo", "--noheader", "--nodes=n2", "--format=%T"):
        time.sleep(0.1)


WORDS = {
    kill_worker: "LaunchError Worker 3 of 4, on n2, was killed by SIGKILL",
    cancel: r"LaunchError Job \d+ was cancelled",
    kill_slurmd: r"LaunchError Job \d+ has lost a node",
    interrupt: "KeyboardInterrupt",
}


@pytest.fixture
def caller(slurm, tmp_path):
    caller = Caller(tmp_path, "Slurm(nodes=2, gpus=1)")
    yield caller
    caller.limit.cancel()
    caller.process.kill()
    caller.process.communicate()


def mend(slurm):
    """Start a slurmd that a test has killed."""
    first = slurm.first_process("n2").pid
    start = f"SLURM_CONF={slurm.folder}/slurm.conf exec slurmd"
    subprocess.run(["nsenter", "-t", str(first), "-a", "sh", "-c", start], check=True)
    while "idle" not in slurm.ask("sinfo", "--noheader", "--nodes=n2", "--format=%T"):
        time.sleep(0.1)


@pytest.mark.parametrize("harm", sample(2, [cancel, interrupt, kill_worker, kill_slurmd]))
def test_the_end_is_told_in_time_and_the_job_is_gone(slurm, caller, harm):
    caller.until("ready")
    harm(slurm, caller)
    start = time.monotonic()
    assert re.match(f"ended {WORDS[harm]}", caller.until("ended"))
    assert time.monotonic() - start < SECONDS
    gone(slurm, caller, start)
    if harm == kill_slurmd:
        mend(slurm)


def test_a_killed_caller_ends_its_job(slurm, caller):
    caller.until("ready")
    caller.process.kill()
    start = time.monotonic()
    caller.process.wait()
    gone(slurm, caller, start)


@pytest.mark.parametrize("number", sample(1, [signal.SIGINT, signal.SIGKILL]))
def test_a_job_that_waits_is_told_of_and_goes_with_its_caller(slurm, tmp_path, number):
    before = slurm.ask(
        "sbatch", "--parsable", "--nodes=2", "--exclusive", "--wrap=sleep 60", "--output=/dev/null"
    )
    until(lambda: slurm.jobs() == [f"{before} RUNNING"])
    caller = Caller(tmp_path, "Slurm(nodes=2)")
    try:
        line = caller.until("Job")
        own = re.search(r"scancel (\d+)$", line.strip())[1]
        assert "waits in the partition gpu" in line and own != before
        assert set(slurm.jobs()) == {f"{before} RUNNING", f"{own} PENDING"}
        caller.process.send_signal(number)
        caller.process.communicate(timeout=SECONDS)
    finally:
        caller.limit.cancel()
        caller.process.kill()
    start = time.monotonic()
    while slurm.jobs() != [f"{before} RUNNING"]:
        assert time.monotonic() - start < SECONDS, slurm.jobs()
    slurm.ask("scancel", before)
    assert slurm.left_at_last() == []


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"nodes": 3}, "would wait for ever (Partition"),  # NodeLimit, or at first Config
        ({"nodes": 1, "num_processes": 9}, "would wait for ever (PartitionConfig)"),
        ({"nodes": 2, "gpus": 3}, "Requested node configuration is not available"),
        ({"nodes": 1, "partition": "nope"}, "invalid partition specified: nope"),
        ({"nodes": 1, "time": "2-0"}, "would wait for ever (Partition"),  # TimeLimit, or as above
        ({"job": 99_999}, "Job 99999 is not there"),
    ],
)
def test_what_slurm_cannot_give_is_told_with_what_it_can(slurm, wanted, words):
    wanted = dict(wanted)
    number = wanted.pop("num_processes", 1)
    with pytest.raises(LaunchError) as caught:
        launch(print, hosts=Slurm(**wanted), num_processes=number)
    assert words in str(caught.value)
    there = "There is: gpu: 2 nodes with gpu:2 and 4 cores, for at most 1:00:00"
    assert "job" in wanted or there in str(caught.value)
    assert slurm.left_at_last() == []


def test_no_slurm_is_told(slurm, monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    with pytest.raises(LaunchError, match="there is no such file"):
        launch(print, hosts=Slurm(nodes=1), num_processes=1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="There is no Slurm here: the program salloc"):
        launch(print, hosts=Slurm(nodes=1), num_processes=1)
