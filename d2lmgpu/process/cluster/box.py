"""``d2lmgpu cluster up`` and ``down``: hosts as network namespaces of this machine.

A host is a process tree in namespaces of its own (network, host name, mounts, process ids) with an
sshd that listens on the host's address alone. Its first process is below an ``unshare`` whose
command line names the cluster's folder: by that it is found again, whoever was killed. With the
first process all of the host ends, and its network and mounts with it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from d2lmgpu.machine.checks import is_whole
from d2lmgpu.process.cluster import links, slurm, state
from d2lmgpu.process.cluster.state import ClusterError, check_rate

HOST = Path(__file__).with_name("host.sh")
UNSHARE = [*state.UNSHARE, "--net"]
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}
SECONDS = 10  # for a host to answer, or to go

SSHD = """ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
AuthenticationMethods publickey
StrictModes no
UsePAM no
PidFile none
ClientAliveInterval 2
ClientAliveCountMax 3
SetEnv TMPDIR=/run {environ}
"""
SSH = """User root
IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
StrictHostKeyChecking yes
"""


def missing(with_slurm=False) -> list[str]:
    """What this machine lacks for hosts of its own, one line each; [] if there is all."""
    if sys.platform != "linux":
        return [f"Linux, whose network namespaces the hosts are: this is {sys.platform}"]
    if os.geteuid():
        return ["the rights of root, to make network namespaces: try sudo"]
    lacking = [
        f"the program {program} (package {package})"
        for program, package in (PROGRAMS | (slurm.PROGRAMS if with_slurm else {})).items()
        if not shutil.which(program)
    ]
    if not lacking:
        tried = subprocess.run([*UNSHARE, "true"], text=True, capture_output=True)
        lacking = tried.returncode * [f"namespaces, not allowed here: {tried.stderr.strip()}"]
    return lacking


def up(num_hosts, rate="1gbit", with_slurm=False) -> dict:
    """Start hosts n1, n2, … with links of ``rate`` each; return the cluster's state.

    ``with_slurm``: they are the nodes of a Slurm, idle, with two GPUs each that are only counted.
    Raises ClusterError for what this machine lacks, a number or rate that cannot be, and a cluster
    that is already up. What an earlier ``up`` or ``down`` left that was killed is removed first.
    """
    if not is_whole(num_hosts, 1, links.MANY):
        raise ClusterError(f"{num_hosts!r} hosts: give a whole number from 1 to {links.MANY}.")
    check_rate(rate)
    _refuse_what_is_missing(with_slurm)
    with _alone():
        there = state.read().get("hosts", {})
        if there and all(_is_host(host["pid"]) for host in there.values()):
            raise ClusterError(f"{len(there)} hosts are up: `d2lmgpu cluster down` removes them.")
        _remove()
        try:
            with links.free_network() as network:
                names = [f"n{i}" for i in range(1, num_hosts + 1)]
                return _build(names, network, rate, with_slurm)
        except BaseException:
            _remove()
            raise


def rate(rate) -> None:
    """Let ``rate`` (1gbit, 100mbit) through each link from now on, in each direction."""
    check_rate(rate)
    with _alone():
        cluster = state.read()
        if not cluster:
            raise ClusterError("No cluster is up: `d2lmgpu cluster up` starts one.")
        links.shape(cluster["bridge"], cluster["hosts"], rate)
        state.write(cluster | {"rate": rate})


def down() -> None:
    """Remove all hosts and links, whatever of them there is."""
    _refuse_what_is_missing()
    with _alone():
        _remove()


def _refuse_what_is_missing(with_slurm=False):
    if lacking := missing(with_slurm):
        raise ClusterError("Hosts in one box need " + ";\nand ".join(lacking) + ".")


@contextlib.contextmanager
def _alone():
    """One of ``up``, ``rate`` and ``down`` at a time: a name that the system frees with us."""
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(f"\0d2lmgpu-cluster {state.folder()}")
        except OSError:
            raise ClusterError(
                "Another `d2lmgpu cluster` is at work on these hosts: wait until it has ended."
            ) from None
        yield


def _build(names, network, rate, with_slurm):
    folder = state.folder()
    bridge = links.bridge_of(folder)
    addresses = {name: str(network[i]) for i, name in enumerate(names, start=1)}
    _write_files(folder, addresses, str(network[-2]), with_slurm)
    processes = {name: _start(folder, name) for name in names}
    hosts = {}
    for name, process in processes.items():
        if process.stdout.readline() != b"ready\n":
            raise ClusterError(f"{name}: {process.stderr.read().decode().strip()}")
        hosts[name] = {"address": addresses[name], "pid": process.pid}
    links.connect(bridge, network, hosts)
    links.shape(bridge, hosts, rate)
    head = slurm.start_head(folder) if with_slurm else None
    for process in processes.values():
        process.stdin.write(b"go\n")
        process.stdin.close()
    for name, process in processes.items():
        _wait(
            lambda name=name, process=process: (
                process.poll() is not None or _answers(addresses[name])
            ),
            f"{name} does not answer",
        )
        if process.poll() is not None:
            raise ClusterError(f"{name} has ended: {_last_lines(folder, name)}")
    if with_slurm:
        _wait(lambda: slurm.are_idle(folder, names), f"Slurm ({folder}/*.log) is not idle")
    cluster = {"hosts": hosts, "bridge": bridge, "rate": rate, "slurm": head and head.pid}
    state.write(cluster)
    return cluster


def _write_files(folder, addresses, own_address, with_slurm):
    folder.mkdir(mode=0o700, parents=True)
    for key in ("key", "host_key"):
        links.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / key)
    public = (folder / "host_key.pub").read_text(encoding="utf-8")
    known = [f"{address} {public}" for address in addresses.values()]
    (folder / "known_hosts").write_text("".join(known), encoding="utf-8")
    entries = [f"Host {name}\nHostName {address}\n" for name, address in addresses.items()]
    (folder / "ssh_config").write_text(
        "".join(entries) + "Host *\n" + SSH.format(folder=folder), encoding="utf-8"
    )
    named = {
        "localhost": "127.0.0.1",
        socket.gethostname(): own_address,
        "head": own_address,
    } | addresses
    lines = [f"{address} {name}\n" for name, address in named.items()]
    (folder / "hosts").write_text("".join(lines), encoding="utf-8")
    (folder / "shadow").write_text(
        "root:*:1:0:99999:7:::\n", encoding="utf-8"
    )  # no password, and not locked
    environ = f"SLURM_CONF={folder}/slurm.conf" if with_slurm else ""
    for name, address in addresses.items():
        text = SSHD.format(folder=folder, address=address, environ=environ)
        (folder / name).write_text(text, encoding="utf-8")
    if with_slurm:
        slurm.write_files(folder, addresses, own_address)


def _start(folder, name):
    return subprocess.Popen(
        [*UNSHARE, "sh", HOST, folder, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _last_lines(folder, name):
    """Of the logs of a host, one each."""
    logs = [path.read_text(encoding="utf-8").split("\n") for path in folder.glob(f"*{name}.log")]
    return "; ".join(line for log in logs for line in log[-2:-1])


def _answers(address):
    with contextlib.suppress(OSError), socket.create_connection((address, 22), timeout=1):
        return True


def _remove():
    folder = state.folder()
    for pid in filter(_is_host, map(int, filter(str.isdigit, os.listdir("/proc")))):
        # The host's first process, and `unshare` ends after it; or `unshare` before it has one.
        with contextlib.suppress(OSError):
            first = Path(f"/proc/{pid}/task/{pid}/children").read_text(
                encoding="utf-8"
            ).split() or [pid]
            os.kill(int(first[0]), signal.SIGKILL)
        _wait(lambda pid=pid: not _is_host(pid), f"process {pid} of a host does not end")
    links.disconnect(links.bridge_of(folder))
    shutil.rmtree(folder, ignore_errors=True)


def _is_host(pid):
    """Whether the process ``pid`` holds a host of the cluster in this folder."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words[0] == b"unshare" and os.fsencode(state.folder()) in words
    return False


def _wait(condition, otherwise):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"{otherwise} within {SECONDS} s.")
        time.sleep(0.02)
