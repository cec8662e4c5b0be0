"""Hosts that ssh reaches, and what is started on a host, however it is reached."""

import os
import shlex
import shutil
from pathlib import Path

from d2lmgpu.process.cluster.state import ssh_options
from d2lmgpu.process.failures import LaunchError
from d2lmgpu.process.settings import run_module

CONNECT = 5  # seconds in which a host answers
PACKAGE = Path(__file__).parents[3]
SSH = [
    "ssh",
    "-T",
    "-S",
    "none",
    "-o",
    "BatchMode=yes",
    "-o",
    f"ConnectTimeout={CONNECT}",
    "-o",
    "ServerAliveInterval=2",
    "-o",
    "ServerAliveCountMax=3",
]


class Ssh:
    """``hosts`` by their names, as ssh knows them."""

    environ = None  # ssh takes on this process's

    def __init__(self, hosts):
        self.hosts = hosts

    def commands(self, framework) -> dict:
        """What starts an agent, by host. Raises LaunchError where there is no ssh."""
        if not shutil.which("ssh"):
            raise LaunchError("Other hosts are reached by ssh, which is not installed here.")
        ssh = [*SSH, *ssh_options(self.hosts), "--"]
        return {host: [*ssh, host, agent(framework)] for host in self.hosts}


def agent(framework) -> str:
    """What a shell runs on a host: the same Python, in the same folder, with the same package."""
    path = shlex.quote(f"PYTHONPATH={PACKAGE}")  # env: the login shell there may be no Bourne shell
    python = shlex.join(run_module("d2lmgpu.process.hosts.agent"))
    return f"cd {shlex.quote(os.getcwd())} && exec env {path} {python} {framework}"
