"""The hosts of a cluster as tests see them from outside, and what is left of them."""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from processes import commands

from d2lmgpu.process.cluster import box, inside, state

SECONDS = 30  # in which nothing of a run may be left, on a busy machine too: it takes one at rest


def cluster_command(*words, folder, within=(), **options):
    """``d2lmgpu cluster`` with ``words``, on the cluster in ``folder``, started by ``within``."""
    command = [*within, sys.executable, "-m", "d2lmgpu", "cluster", *map(str, words)]
    environ = os.environ | {state.VARIABLE: str(folder)}
    return subprocess.run(command, env=environ, text=True, capture_output=True, **options)


@contextlib.contextmanager
def standing(folder, *options):
    """The cluster in ``folder`` is up for the time of a block; then nothing is left of it."""
    done = cluster_command("up", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    yield
    cluster_command("down", folder=folder, check=True)
    assert traces_of(folder) == []


def traces_of(folder):
    """What is there of the cluster in ``folder``: files, processes, interfaces and mounts."""
    name = os.fsencode(folder)
    lines = Path("/proc/mounts").read_bytes().splitlines()
    traces = [line for line in lines if name in line]
    if folder.exists():
        traces += folder.rglob("*")
    others = (words for process, words in commands().items() if process.pid != os.getpid())
    traces += [words for words in others if str(folder) in words]
    bridge = box.links.bridge_of(folder)
    return traces + [name for name in interfaces() if name.startswith(bridge)]


def interfaces():
    """The names of this machine's network interfaces."""
    return {name for _, name in socket.if_nameindex()}


class Cluster(inside.Hosts):
    """Hosts n1, n2, … that are up."""

    def first_process(self, host):
        """The process with whose end the host ends."""
        return psutil.Process(self.first(host))

    def processes(self, host):
        """All processes on the host but its sshd and slurmd."""
        processes = []
        for pid in self.commands(host):
            with contextlib.suppress(psutil.Error):  # it has gone
                process = psutil.Process(pid)
                processes += [process] * (process.name() != "slurmd")
        return processes

    def agents(self, host):
        words = self.commands(host)  # those of a process that has just ended cannot be asked for
        agent = "d2lmgpu.process.hosts.agent"
        return [p for p in self.processes(host) if agent in words.get(p.pid, ())]

    def files(self, host):
        """What lies in the host's own folder for temporary files."""
        disk = Path(f"/proc/{self.first(host)}/root")  # Linux's name for that process's own
        return list((disk / "run").glob("d2lmgpu-*"))

    def left(self):
        """What is left of runs on the hosts that are alive: processes and files."""
        alive = filter(self.alive, self.names)
        return [
            (host, thing) for host in alive for thing in self.processes(host) + self.files(host)
        ]

    def left_at_last(self):
        """What is still left then: an ssh daemon there outlives the caller's ssh by a moment."""
        start = time.monotonic()
        while (left := self.left()) and time.monotonic() - start < SECONDS:
            time.sleep(0.05)
        return left


class SlurmCluster(Cluster):
    """Hosts that are the nodes of a Slurm."""

    def ask(self, *words, host="n1"):
        """What a command of Slurm prints on a host."""
        ssh = ["ssh", "-F", self.folder / "ssh_config", host, shlex.join(map(str, words))]
        return subprocess.check_output(ssh, text=True).strip()

    def jobs(self):
        """The jobs that wait, run or end: number and state."""
        return self.ask("squeue", "--noheader", "--format=%A %T").splitlines()

    def left(self):
        return super().left() + self.jobs()

    def slurmd(self, host):
        children = self.first_process(host).children()
        return next(process for process in children if process.name() == "slurmd")
