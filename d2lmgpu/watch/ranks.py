"""The supervisor of a watched script: ``d2lmgpu.watch.ranks JOB EVENTS FOLDER``.

It reads one job, starts a ``worker`` for each rank with the environment that torchrun gives, and
sees to their end, see ``process.supervisor``. Scripts for older launchers take their rank as an
argument: each gets its own in place of {rank}, as an argument or as the value of one, and the world
size in place of {world_size}. No framework is imported here.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from d2lmgpu.process.roles import LOOPBACK, LOOPBACK_INTERFACE, held_ports
from d2lmgpu.process.settings import run_module
from d2lmgpu.process.supervisor import (
    end_with_the_parent,
    lead_a_group,
    see_to_the_end,
    start_guard,
)
from d2lmgpu.watch.files import NONE, VIEW, protection

COMMAND = run_module("d2lmgpu.watch.ranks")
WORKER = run_module("d2lmgpu.watch.worker")
VARIABLE = "D2LMGPU_WATCH"  # a worker's settings, as JSON
MEETING = "D2LMGPU_MEETING"  # the address and port of MASTER_ADDR and MASTER_PORT, as they were
PLACES = re.compile(r"(?<![^=])\{(rank|world_size)\}$")  # {rank}, and --local_rank={rank}
GRACE = 20.0  # seconds above the limit after which everything is ended from outside
ROOT = str(Path(__file__).parents[2])  # where this package is found


def main(job, events, folder):
    guarded = start_guard(int(events), folder)
    with open(int(job), "rb") as pipe:
        job = json.loads(pipe.read())
    (port,) = held_ports(1)
    protected = protection(folder, job["cwd"])
    event = {"event": "protection", "kind": protected.kind, "why": protected.why}
    os.write(int(events), json.dumps(event).encode() + b"\n")
    if protected.kind == NONE and not job["unprotected"]:
        job["processes"] = 0
    job["settings"]["view"] = protected.kind == VIEW
    workers = [start(rank, port, job, protected) for rank in range(job["processes"])]
    see_to_the_end(workers, guarded, int(events), folder)


def start(rank, port, job, protected):
    """Start the worker of a rank, its files ``protected``; its process id."""

    def begin():
        lead_a_group()
        protected.enter(job["settings"]["folder"])
        end_with_the_parent()  # again: who enters a user namespace has forgotten it

    number = str(job["processes"])
    path = [entry for entry in (os.environ.get("PYTHONPATH"), ROOT) if entry]
    environ = {
        "OMP_NUM_THREADS": "1",  # as torchrun has it; a device is a core
        "GLOO_SOCKET_IFNAME": LOOPBACK_INTERFACE,
        **os.environ,
        **job["environ"],
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "GROUP_RANK": "0",
        "ROLE_RANK": str(rank),
        "WORLD_SIZE": number,
        "LOCAL_WORLD_SIZE": number,
        "ROLE_WORLD_SIZE": number,
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        MEETING: f"{LOOPBACK}:{port}",
        VARIABLE: json.dumps(job["settings"]),
    }
    places = {"rank": str(rank), "world_size": number}
    arguments = [PLACES.sub(lambda place: places[place[1]], each) for each in job["command"]]
    worker = subprocess.Popen(
        [*WORKER, *arguments],
        cwd=job["cwd"],
        env=environ,
        stdin=subprocess.DEVNULL,
        preexec_fn=begin,
        restore_signals=True,
    )
    return worker.pid


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller's interrupt closes the pipe
    main(*sys.argv[1:])
