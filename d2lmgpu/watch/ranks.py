"""The supervisor of a watched script: ``d2lmgpu.watch.ranks JOB EVENTS FOLDER [SOCKET]``.

It reads one job, starts a ``worker`` for each rank with the environment that torchrun gives, and
sees to their end, see ``process.supervisor``. Scripts for older launchers take their rank as an
argument: each gets its own in place of {rank}, as an argument or as the value of one, and the world
size in place of {world_size}.

With SOCKET it forks the supervisors of later runs, see ``template``. Then it imports PyTorch, and
forks rank 0, too; the other ranks are started, since sets have an order of their own in each
process that is. It computes nothing and has no other thread.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from subprocess import Popen

from d2lmgpu.process.addresses import LOOPBACK, LOOPBACK_INTERFACE, held_ports
from d2lmgpu.process.forks import answered, still_runs
from d2lmgpu.process.settings import run_module
from d2lmgpu.process.supervisor import (
    end_with_the_parent,
    lead_a_group,
    ready,
    see_to_the_end,
    start_guard,
    wake_at_an_end,
)
from d2lmgpu.watch.files import NONE, VIEW, protection
from d2lmgpu.watch.preloading import THREADS, is_hidden, preload

COMMAND = run_module("d2lmgpu.watch.ranks")
WORKER = run_module("d2lmgpu.watch.worker")
VARIABLE = "D2LMGPU_WATCH"  # a worker's settings, as JSON
MEETING = "D2LMGPU_MEETING"  # the address and port of MASTER_ADDR and MASTER_PORT, as they were
PLACES = re.compile(r"(?<![^=])\{(rank|world_size)\}$")  # {rank}, and --local_rank={rank}
GRACE = 20.0  # seconds above the limit after which everything is ended from outside
ROOT = str(Path(__file__).parents[2])  # where this package is found


def main(job, events, folder, *server, preloaded=False) -> None:
    begun = time.monotonic()
    server = [socket.socket(fileno=int(descriptor)) for descriptor in server]
    guarded = start_guard(int(events), folder, [each.fileno() for each in server])
    with open(int(job), "rb") as pipe:
        job = json.loads(pipe.read())
    (port,) = held_ports(1)
    protected = protection(folder, job["cwd"])
    event = {"event": "protection", "kind": protected.kind, "why": protected.why}
    os.write(int(events), json.dumps(event).encode() + b"\n")
    if protected.kind == NONE and not job["unprotected"]:
        job["processes"] = 0
    job["settings"] |= {"view": protected.kind == VIEW, "begun": begun}
    started = [start(rank, port, job, protected) for rank in range(1, job["processes"])]
    workers = [worker.pid for worker in started]
    if job["processes"]:
        script = job["settings"]["script"]
        if server and protected.kind == VIEW:
            preloaded = preload(job["environ"], script)
        if preloaded and protected.kind == VIEW and not is_hidden(script):
            first = fork(0, port, job, protected)
        else:
            started.append(start(0, port, job, protected))
            first = started[-1].pid
        workers.insert(0, first)
    supervise = partial(main, preloaded=preloaded)
    serve = partial(fork_on_request, *server, guarded, int(events), supervise) if server else None
    see_to_the_end(workers, guarded, int(events), folder, afterwards=serve)


def fork_on_request(server, guarded, events, supervise) -> None:
    """Fork the supervisors of later runs, until the caller or the guard goes."""
    woken, asked = wake_at_an_end(), True
    while True:
        due = ready(None, 0, guarded, woken, *[server.fileno()] * asked)
        if 0 in due or guarded in due:
            return
        if woken in due:
            os.read(woken, 512)
            still_runs()
        if server.fileno() in due:
            asked = answered(server, (guarded, events, woken), supervise)


def begin(job, protected) -> None:
    """What a worker does first: go where the script's files are ``protected``."""
    lead_a_group()
    protected.enter(job["settings"]["folder"])
    end_with_the_parent()  # again: who enters a user namespace has forgotten it


def fork(rank, port, job, protected) -> int:
    """Fork the worker of a rank, with PyTorch imported; its process id."""
    if pid := os.fork():
        return pid
    try:
        os.chdir(job["cwd"])
        begin(job, protected)
        for descriptor in {*map(int, os.listdir("/proc/self/fd"))} - {0, 1, 2}:
            with contextlib.suppress(OSError):  # that of the list itself
                os.close(descriptor)
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        environ, arguments = of_rank(rank, port, job)
        sys.modules["d2lmgpu.watch.worker"].forked(environ, *arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def start(rank, port, job, protected) -> Popen[bytes]:
    """Start the worker of a rank, its files ``protected``; its ``Popen``.

    Keep that: of one that is forgotten the next ``Popen`` takes the exit code, if it has ended.
    """
    environ, arguments = of_rank(rank, port, job)
    return subprocess.Popen(
        [*WORKER, *arguments],
        cwd=job["cwd"],
        env=environ,
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(begin, job, protected),
        restore_signals=True,
    )


def of_rank(rank, port, job) -> tuple[dict, list[str]]:
    """The environment of the worker of a rank, and its arguments."""
    number = str(job["processes"])
    path = [entry for entry in (os.environ.get("PYTHONPATH"), ROOT) if entry]
    environ = {
        THREADS: "1",  # as torchrun has it; a device is a core
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
    return environ, [PLACES.sub(lambda place: places[place[1]], each) for each in job["command"]]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller's interrupt closes the pipe
    main(*sys.argv[1:])
