"""Where a cluster in one box keeps what it is: its hosts, its keys, how ssh reaches them."""

import contextlib
import json
import os
import re
import socket
from pathlib import Path

from d2lmgpu.machine.atomic_write import save

VARIABLE = "D2LMGPU_CLUSTER"
RATE = re.compile(r"([1-9]\d{0,5})([kmg])bit")
SCRIPT = Path(__file__).with_name("on_this_machine.sh")
# What stands before the command of a tree of processes of a cluster's own; it ends with its first.
UNSHARE = ["unshare", "--uts", "--mount", "--pid", "--fork", "--mount-proc"]
DEFAULT = "/run/d2lmgpu-cluster"  # gone with a restart of the machine, as the hosts are


class ClusterError(RuntimeError):
    """A cluster in one box was asked for that this machine cannot give."""


def folder() -> Path:
    """The cluster's folder: ``D2LMGPU_CLUSTER``, else one that all users of root's rights share."""
    return Path(os.path.abspath(os.environ.get(VARIABLE) or DEFAULT))


def read() -> dict:
    """The cluster that is up, or {}.

    It has ``hosts`` (name: address and pid), ``bridge``, ``rate`` and ``slurm``: the pid of what
    holds the controller, or None.
    """
    with contextlib.suppress(OSError):
        return json.loads((folder() / "state.json").read_text(encoding="utf-8"))
    return {}


def write(state: dict) -> None:
    save(folder() / "state.json", json.dumps(state, indent=1).encode())


def ssh_options(hosts) -> list[str]:
    """What ssh needs to reach ``hosts``: the cluster's own settings if one of them is its."""
    ours = set(read().get("hosts", ())) & set(hosts)
    return ["-F", str(folder() / "ssh_config")] if ours else []


def slurm_on_this_machine(folder) -> list[str]:
    """What stands before a command of the Slurm in ``folder`` on this machine."""
    return ["unshare", "--uts", "--mount", "sh", str(SCRIPT), str(folder)]


def slurm_command() -> list[str]:
    """What stands before a command of Slurm: that of the hosts in one box, if it is the one.

    It is where no other is configured and this process is on none of the hosts.
    """
    conf = os.environ.get("SLURM_CONF")
    ours = read().get("slurm") and conf in (None, str(folder() / "slurm.conf"))
    # /sys may show the interfaces of another network, which a container has been given
    on_this_machine = ours and read()["bridge"] in dict(socket.if_nameindex()).values()
    return slurm_on_this_machine(folder()) if on_this_machine else []


def check_rate(rate) -> str:
    """``rate`` if it is one, as in 1gbit or 100mbit; else ClusterError."""
    if not (isinstance(rate, str) and RATE.fullmatch(rate)):
        raise ClusterError(f"rate {rate!r}: give a number and a unit, as in 100mbit or 1gbit.")
    return rate
