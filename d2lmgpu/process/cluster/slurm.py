"""A Slurm on the hosts in one box: a controller beside them, slurmd on each, GPUs only counted.

Its commands run on each host, and on this machine behind ``here``. The controller is a process
tree in namespaces of its own, as a host is, but in this machine's network: it listens on the
address of the bridge.
"""

import os
import secrets
import subprocess
from pathlib import Path
from subprocess import Popen

from d2lmgpu.process.cluster import state

HEAD = Path(__file__).with_name("head.sh")
CONF = Path(__file__).with_name("slurm.conf")
PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "munged": "munge",
}
CORES, GPUS = 4, 2  # that a host is said to have


def write_files(folder, addresses, own_address) -> None:
    """The key of munge and the configuration, before any host starts."""
    (folder / "slurm").mkdir(mode=0o700)
    key = os.open(folder / "munge.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(key, "wb") as file:
        file.write(secrets.token_bytes(128))
    has = f"CPUs={CORES} RealMemory=4000 Gres=gpu:{GPUS}"
    nodes = [f"NodeName={name} NodeAddr={at} {has}" for name, at in addresses.items()]
    text = CONF.read_text(encoding="utf-8").format(
        folder=folder, here=own_address, nodes="\n".join(nodes)
    )
    (folder / "slurm.conf").write_text(text, encoding="utf-8")
    device = f"Name=gpu File=/run/gpu[0-{GPUS - 1}]"
    gpus = [f"NodeName={name} {device}\n" for name in addresses]
    (folder / "gres.conf").write_text("AutoDetect=off\n" + "".join(gpus), encoding="utf-8")
    # No control group is used, and still slurmd ends where there are none, as in a container: but
    # for the plugin of version 1, which does not look before one is wanted.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")


def start_head(folder) -> Popen[bytes]:
    """The controller, once the bridge is there; the process that holds it."""
    return subprocess.Popen(
        [*state.UNSHARE, "sh", HEAD, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def are_idle(folder, names) -> bool:
    """Whether the controller answers and every host waits for a job."""
    command = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
    done = subprocess.run(
        [*state.slurm_on_this_machine(folder), *command], text=True, capture_output=True, cwd="/"
    )
    return sorted(done.stdout.splitlines()) == sorted(f"{name} idle" for name in names)
