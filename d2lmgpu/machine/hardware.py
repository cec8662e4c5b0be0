"""What this computer is made of: its processor and how much of it is ours, memory, GPUs."""

import math
import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

SHARED = "/dev/shm"


@cache
def machine() -> dict:
    """This machine in words and numbers, without its name or any path; asked once a process."""
    return {
        "cpu": cpu_model(),
        "cores": num_cores(),
        "memory_gib": memory_gib(),
        "gpus": installed_gpus(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def memory_gib() -> int | None:
    """The main memory, in GiB; None where the system does not tell it so (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def shared_memory(folder=SHARED) -> int | None:
    """How large the memory is that processes of this host share, in bytes; None where is none."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return None
    return room.f_frsize * room.f_blocks


def cpu_model() -> str:
    """The CPU as it names itself."""
    try:
        return re.search(
            r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8")
        )[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def installed_gpus() -> list[str]:
    """The GPUs that the driver lists, one line each; none without a driver."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if listed.returncode:
        return []
    return [line.split(" (UUID")[0].strip() for line in listed.stdout.splitlines() if line.strip()]


def num_cores() -> int:
    """Number of CPU cores that this process may keep busy, by affinity and quotas; at least 1."""
    return max(1, min(affinity(), quota()))


def affinity() -> int:
    """Number of CPU cores on which this process may run, however little of their time it gets."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


@cache  # asked for in every step, and half a millisecond long
def quota(root=Path("/")) -> float:
    """Whole cores that the control groups leave to this process, when first asked; inf: no limit.

    Such a limit (``cpu.max`` of cgroups version 2, ``cpu.cfs_quota_us`` of version 1) is what
    ``docker --cpus``, Kubernetes, Slurm and JupyterHub set; ``nproc`` does not show it. A part of a
    core does not count: with 1.5, two devices would stop for each other's turns.

    ``root`` is where ``/proc`` and ``/sys`` are.
    """
    return min(map(_limit, _groups(root)), default=math.inf)


def _groups(root):
    """The folders of this process's control groups that may hold a CPU quota, with all above."""
    try:
        mounts, groups = lines(root / "proc/self/mountinfo"), lines(root / "proc/self/cgroup")
    except OSError:  # not on Linux
        return
    own = {}  # "cpu" for version 1, "" for version 2 -> the group's path
    for line in groups:
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    for line in mounts:
        (_, _, _, top, place, *_), (kind, _, options) = (
            half.split(" ") for half in line.split(" - ", 1)
        )
        version_1 = kind == "cgroup" and "cpu" in options.split(",")
        path = own.get("cpu" if version_1 else "") if version_1 or kind == "cgroup2" else None
        if path is None:
            continue
        # A container may see the mount from outside and its group from inside, or the reverse:
        # then what is mounted is the container's own group.
        below = Path(path).relative_to(top) if Path(path).is_relative_to(top) else Path()
        mount = root / place.lstrip("/")
        yield from (mount / part for part in (below, *below.parents))


def lines(path) -> list[str]:
    """The lines of one of Linux's own files, in which folders have any bytes in their names."""
    return os.fsdecode(path.read_bytes()).split("\n")[:-1]


def _limit(folder) -> float:
    """Whole cores that one control group allows; inf where it sets no limit."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text(encoding="utf-8").strip()
                for name in ("quota", "period")
            )
    except OSError:  # the topmost group has none, a group above a container's cannot be read
        return math.inf
    return math.inf if quota in ("max", "-1") else int(quota) // int(period)
