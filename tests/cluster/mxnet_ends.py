"""MXNet's roles train on hosts, and one of them is killed: when all has ended, and in what words.

It cannot go on: nobody in it takes a worker off the count.
"""

import os
import signal
import time
from pathlib import Path

import psutil

from d2lmgpu.launch import LaunchError, launch

HOSTS = ["n1", "n2"]  # MXNet begins with the last address
# What is killed: by which worker, its place among the processes of that host, and what is told.
ROLES = {
    "worker": (1, 0, "Worker 0 of 4, on n2"),
    "server": (2, 2, "Server 1 of 2, on n1"),
    "scheduler": (0, 3, "The scheduler, on n2"),
}


def pushes(killer, place, delay, killed):
    """Push and pull for ever; after a while the worker ``killer`` kills a process of its host.

    It raises where ``place`` is None. The moment of the kill goes to the file ``killed``.
    """
    import mxnet as mx

    kv = mx.kv.create("dist_sync")
    kv.init(0, mx.nd.zeros(1000))
    begun = None
    while True:
        kv.push(0, mx.nd.ones(1000))
        out = mx.nd.zeros(1000)
        kv.pull(0, out=out)
        out.wait_to_read()
        begun = begun or time.monotonic()
        if kv.rank == killer and time.monotonic() > begun + delay:
            if place is None:
                raise ValueError("my shard is empty")
            siblings = sorted(psutil.Process(os.getppid()).children(), key=lambda p: p.pid)
            Path(killed).write_text(str(time.time()))
            siblings[place].send_signal(signal.SIGKILL)


def ends(cluster, folder, role, delay=0):
    """Kill the process of ``role`` so many seconds after the first push; what ``launch`` says."""
    killer, place, role_in_words = ROLES[role]
    killed = folder / "killed"
    line = "nothing"
    try:
        launch(
            pushes, killer, place, delay, str(killed), hosts=HOSTS, num_processes=2, num_servers=2
        )
    except LaunchError as error:
        line = str(error).splitlines()[0]
    seconds = time.time() - float(killed.read_text())
    assert line.startswith(f"{role_in_words}, was killed by SIGKILL"), line
    assert cluster.left_at_last() == []
    return {"role": role, "seconds": seconds, "said": line}
