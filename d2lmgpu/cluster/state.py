"""Where a cluster in one box keeps what it is: its hosts, its keys, how ssh reaches them."""

import contextlib
import json
import os
import re
from pathlib import Path

VARIABLE = "D2LMGPU_CLUSTER"
DEFAULT = "/run/d2lmgpu-cluster"  # gone with a restart of the machine, as the hosts are


class ClusterError(RuntimeError):
    """A cluster in one box was asked for that this machine cannot give."""


def folder() -> Path:
    """The cluster's folder: ``D2LMGPU_CLUSTER``, else one that all users of root's rights share."""
    return Path(os.path.abspath(os.environ.get(VARIABLE) or DEFAULT))


def read() -> dict:
    """The cluster that is up: ``hosts`` (name: address and pid), ``bridge``, ``rate``; or {}."""
    with contextlib.suppress(OSError):
        return json.loads((folder() / "state.json").read_text())
    return {}


def write(state: dict):
    unfinished = folder() / "state.json.part"
    unfinished.write_text(json.dumps(state, indent=1))
    unfinished.rename(folder() / "state.json")


def ssh_options(hosts) -> list[str]:
    """What ssh needs to reach ``hosts``: the cluster's own settings if one of them is its."""
    ours = set(read().get("hosts", ())) & set(hosts)
    return ["-F", str(folder() / "ssh_config")] if ours else []


def check_rate(rate) -> str:
    """``rate`` if it is one, as in 1gbit or 100mbit; else ClusterError."""
    if not (isinstance(rate, str) and re.fullmatch(r"[1-9]\d{0,5}[kmg]bit", rate)):
        raise ClusterError(f"rate {rate!r}: give a number and a unit, as in 100mbit or 1gbit.")
    return rate
