"""Hosts in one box: they are there, they are slow, and they go without a trace."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from box_traces import Cluster, cluster_command, interfaces, traces_of
from soaking import sample

from d2lmgpu.process.cluster import box, state

SEND = (
    "import socket, sys; s = socket.create_connection(({!r}, {})); s.sendall(bytes({})); s.recv(1)"
)


def seconds_to_send(cluster, host, size):
    """Seconds that ``size`` bytes take from a host to this machine."""
    address = next(
        a.address
        for a in psutil.net_if_addrs()[cluster.state["bridge"]]
        if a.family == socket.AF_INET
    )
    with socket.create_server((address, 0)) as server:
        code = SEND.format(address, server.getsockname()[1], size)
        inside = ["nsenter", "-t", str(cluster.state["hosts"][host]["pid"]), "-n"]
        with subprocess.Popen([*inside, sys.executable, "-c", code]):
            connection, _ = server.accept()
            with connection:
                start, got = time.perf_counter(), 0
                while got < size:
                    got += len(connection.recv(1 << 20))
                return time.perf_counter() - start


@pytest.mark.parametrize(("rate", "size"), [("100mbit", 4_000_000), ("20mbit", 1_000_000)])
def test_a_link_lets_its_rate_through(cluster, rate, size):
    before = seconds_to_send(cluster, "n2", size)  # at 1 Gbit/s
    cluster_command("rate", rate, folder=cluster.folder, check=True)
    try:
        seconds = seconds_to_send(cluster, "n2", size)
    finally:
        cluster_command("rate", "1gbit", folder=cluster.folder, check=True)
    expected = 8 * (size - 128_000) / (int(rate.removesuffix("mbit")) * 1e6)
    assert expected < seconds < 1.25 * expected + 0.05
    assert before < seconds / 2


def test_each_sshd_listens_on_its_host_s_address_only(cluster):
    names = {socket.gethostname()}
    for host in cluster.state["hosts"].values():
        inside = ["nsenter", "-t", str(host["pid"]), "-n", "-u"]
        listening = subprocess.check_output([*inside, "ss", "-Hltn"], text=True)
        assert [line.split()[3] for line in listening.splitlines()] == [f"{host['address']}:22"]
        names.add(subprocess.check_output([*inside, "hostname"], text=True).strip())
    assert names == {socket.gethostname(), "n1", "n2", "n3", "n4"}


def test_the_keys_are_made_for_this_cluster_and_for_root_alone(cluster, two_hosts):
    keys = [
        (c.folder / name).read_text() for c in (cluster, two_hosts) for name in ("key", "host_key")
    ]
    assert len(set(keys)) == 4
    for c in (cluster, two_hosts):
        assert c.folder.stat().st_mode & 0o777 == 0o700
        assert (c.folder / "key").stat().st_mode & 0o777 == 0o600
    address = cluster.state["hosts"]["n1"]["address"]
    done = subprocess.run(
        [
            "ssh",
            "-F",
            two_hosts.folder / "ssh_config",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            address,
            "true",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 255 and "Permission denied (publickey)" in done.stderr


def test_up_and_down_again_leave_nothing(tmp_path):
    folder, links = tmp_path / "cluster", interfaces()
    for _ in range(2):
        assert cluster_command("up", folder=folder).returncode == 0
        assert len(Cluster(folder).state["hosts"]) == 2
        again = cluster_command("up", folder=folder)
        assert again.returncode == 1 and "2 hosts are up" in again.stderr
        assert cluster_command("down", folder=folder).returncode == 0
        assert traces_of(folder) == []
        assert cluster_command("down", folder=folder).returncode == 0
    new = interfaces() - links
    assert all(name.startswith("d2l") for name in new), "other than another cluster's"


def test_two_that_start_at_once_have_networks_of_their_own(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    with ThreadPoolExecutor(2) as both:
        for done in both.map(lambda folder: cluster_command("up", folder=folder), folders):
            assert done.returncode == 0, done.stderr
    first, second = (
        {host["address"] for host in Cluster(folder).state["hosts"].values()} for folder in folders
    )
    for folder in folders:
        cluster_command("down", folder=folder, check=True)
    assert first.isdisjoint(second)


MOMENTS = {
    "the folder": Path.exists,
    "a host": lambda folder: any(map(box._is_host, psutil.pids())),
    "the bridge": lambda folder: box.links.bridge_of(folder) in interfaces(),
    "an sshd": lambda folder: (folder / "n1.log").exists(),
    "the state": lambda folder: (folder / "state.json").exists(),
}


@pytest.mark.parametrize("then", sample(1, ["up", "down"]))
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_killed_up_leaves_goes_with_the_next_command(tmp_path, monkeypatch, moment, then):
    folder = tmp_path / "cluster"
    monkeypatch.setenv(state.VARIABLE, str(folder))
    command = [sys.executable, "-m", "d2lmgpu", "cluster", "up", "--hosts", "4"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not MOMENTS[moment](folder):
            time.sleep(0.001)
        process.kill()
    complete = (folder / "state.json").exists()
    done = cluster_command(then, folder=folder)
    if then == "up":
        assert done.returncode == complete, done.stderr
        assert cluster_command("rate", "10mbit", folder=folder).returncode == 0
        assert cluster_command("down", folder=folder).returncode == 0
    else:
        assert done.returncode == 0, done.stderr
    assert traces_of(folder) == []


def test_what_a_killed_down_leaves_goes_with_the_next(two_hosts):
    command = [sys.executable, "-m", "d2lmgpu", "cluster", "down"]
    process = subprocess.Popen(command)
    while two_hosts.state["hosts"]["n1"]["pid"] in psutil.pids() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert cluster_command("down", folder=two_hosts.folder).returncode == 0
    assert traces_of(two_hosts.folder) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["up", "--hosts", "0"], "0 hosts: give a whole number from 1 to"),
        (["up", "--hosts", "-3"], "-3 hosts"),
        (["up", "--rate", "fast"], "'fast': give a number and a unit, as in 100mbit"),
        (["up", "--rate", "0mbit"], "'0mbit'"),
        (["rate", "1gbit"], "No cluster is up"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(tmp_path, words, sentence):
    done = cluster_command(*words, folder=tmp_path / "cluster")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and sentence in done.stderr
    assert traces_of(tmp_path / "cluster") == []


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "cluster"
    monkeypatch.setenv(state.VARIABLE, str(folder))
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        for command in (lambda: box.up(2), box.down):
            with pytest.raises(state.ClusterError, match="the rights of root"):
                command()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [line.split()[2] for line in box.missing()] == list(box.PROGRAMS)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert box.missing() == ["Linux, whose network namespaces the hosts are: this is darwin"]
    assert not folder.exists()
