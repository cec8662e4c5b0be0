"""What is done to a training on hosts. Each: ``harm(training)``, then it is to go on by itself."""

import os
import signal
import subprocess
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


def cut(training, host):
    training.cluster.link(host, upward=False)


def heal(training, host):
    training.cluster.link(host, upward=True)


def end_and_start(training):
    """SIGTERM, as before a time limit; and the same command again."""
    training.process.send_signal(signal.SIGTERM)
    out, err = training.process.communicate(timeout=60)
    assert "goes on from its checkpoint" in err, err
    left = training.left()
    assert left == [], left
    training.start()


def mount(folder, size):
    """A small disk as ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)


def unmount(folder):
    subprocess.run(["umount", folder], check=True)


def fill_disk(training):
    """Fill the checkpoints' disk until one could not be saved; then make room again."""
    filler, start = training.checkpoints / "filler", time.time()
    disk = os.statvfs(training.checkpoints)
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - (1 << 19))
    training.until(lambda: [x for x in training.lines("not saved") if x["time"] > start])
    stands = sorted(training.checkpoints.glob("step-*.safetensors"))
    filler.unlink()
    freed = time.time()
    training.until(lambda: training.lines("saved")[-1]["time"] > freed)
    return stands
