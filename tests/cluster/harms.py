"""What is done to a training on hosts. Each: ``harm(training)``, then it is to go on by itself."""

import os
import signal
import time


def kill_worker(training, rank=1):
    (worker,) = training.workers(training.host_of(rank))
    worker.kill()


def kill_host(training, rank=1):
    training.cluster.first_process(training.host_of(rank)).kill()


def kill_meeting_host(training):
    """The host of rank 0, at whose address all ranks meet."""
    kill_host(training, rank=0)


def die_in(place):
    """A rank dies in its next ``checkpoint`` or ``allreduce``."""

    def harm(training):
        (training.folder / place).touch()
        training.until(lambda: not (training.folder / place).exists())

    return harm


def cut(training, rank=1):
    training.cluster.link(training.host_of(rank), upward=False)


def heal(training):
    for host in filter(training.cluster.alive, training.cluster.state["hosts"]):
        training.cluster.link(host, upward=True)


def end_and_start(training):
    """SIGTERM, as before a time limit; and the same command again."""
    training.process.send_signal(signal.SIGTERM)
    _, err = training.process.communicate(timeout=60)
    assert "goes on from its checkpoint" in err, err
    left = training.left()
    assert left == [], left
    training.start()


def fill_disk(training):
    """Fill the checkpoints' disk until one could not be saved, then make room again.

    The last one stands all the time. Seconds between the two updates around the failure.
    """
    filler, start = training.checkpoints / "filler", time.time()
    disk = os.statvfs(training.checkpoints)
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - (1 << 19))
    failed = training.until(lambda: [x for x in training.lines("not saved") if x["time"] > start])
    assert sorted(training.checkpoints.glob("step-*.safetensors")), "the last one has gone"
    filler.unlink()
    freed = time.time()
    training.until(lambda: training.lines("saved")[-1]["time"] > freed)
    return training.after(failed[0]["time"]) - failed[0]["time"]
