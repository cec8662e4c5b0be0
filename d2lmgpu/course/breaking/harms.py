"""What is done to a training on hosts. Each: ``harm(training)``, then it is to go on by itself.

A harm returns what was harmed, in words.
"""

import os
import signal
import time

from d2lmgpu.course.breaking.forecast import SLOW


def kill_worker(training, rank=1) -> str:
    host = training.host_of(rank)
    (worker,) = training.workers(host)
    os.kill(worker, signal.SIGKILL)
    return f"the worker on {host}"


def kill_host(training, rank=1) -> str:
    host = training.host_of(rank)
    training.hosts.kill(host)
    return host


def kill_launcher(training) -> str:
    """The launcher holds the store: the training ends, and is started again by the same command."""
    training.kill()
    training.start()
    return "the launcher and its store; the training has ended, and was started again"


def cut(training, rank=1) -> str:
    host = training.host_of(rank)
    training.hosts.link(host, upward=False)
    return f"the link of {host}"


def heal(training) -> str:
    for host in filter(training.hosts.alive, training.hosts.names):
        training.hosts.link(host, upward=True)
    return "all links"


def slow(training, rank=1) -> str:
    host = training.host_of(rank)
    training.hosts.rate(host, f"{SLOW / 1e6:.0f}mbit")
    return f"the link of {host}: {SLOW / 1e6:.0f} Mbit/s"


def quicken(training) -> str:
    for host in filter(training.hosts.alive, training.hosts.names):
        training.hosts.rate(host, training.hosts.state["rate"])
    return "all links"


def fill_disk(training) -> str:
    """Until a checkpoint could not be saved; the last one stands."""
    start, disk = time.time(), os.statvfs(training.checkpoints)
    with open(training.checkpoints / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - (1 << 19))
    training.until(lambda: any(line["time"] > start for line in training.lines("not saved")))
    return "the checkpoints' disk"


def free_disk(training) -> str:
    """Make room, and wait until a checkpoint was saved."""
    (training.checkpoints / "filler").unlink()
    freed = time.time()
    training.until(lambda: training.lines("saved")[-1]["time"] > freed)
    return "the checkpoints' disk"
