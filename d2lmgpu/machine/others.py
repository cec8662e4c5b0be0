"""What everything else on this machine takes of the cores that this process may use."""

import os
import time
from pathlib import Path

PROC = Path("/proc")
STAT = PROC / "stat"  # of each core the ticks that it worked, also for the hypervisor
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # a second
WORKING = slice(0, 8)  # user, nice, system, idle, iowait, irq, softirq, steal
IDLE = (3, 4)
PARENT, SPENT = 1, slice(11, 15)  # of a process, after its name; with children that have ended
LEAST = 0.5  # seconds: of a shorter time a clock that ticks in hundredths tells little


class Others:
    """How many cores the rest of the machine keeps busy, from when this is made.

    The rest is all but this process and those that it has started, and these in their turn.
    """

    def __init__(self):
        self._start = time.monotonic()
        self._busy = _busy()
        self._own = _own()

    def cores(self) -> float | None:
        """The mean number of cores since then; None where that is not known, or too early."""
        busy, seconds = _busy(), time.monotonic() - self._start
        if None in (busy, self._busy) or seconds < LEAST:
            return None
        return max(0.0, busy - self._busy - (_own() - self._own)) / seconds


def _busy():
    """Seconds that the cores which this process may use have worked; None if not known."""
    try:
        own_cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        lines = [line.split() for line in STAT.read_text(encoding="utf-8").splitlines()]
    except (AttributeError, OSError):  # not on Linux, or hidden there
        return None
    counts = [list(map(int, counts))[WORKING] for name, *counts in lines if name in own_cores]
    idle = sum(count[at] for count in counts for at in IDLE)
    return (sum(map(sum, counts)) - idle) / TICKS if counts else None


def _own():
    """Seconds of all cores that this process has had, with all that it has started."""
    processes = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        processes[int(stat.parent.name)] = int(fields[PARENT]), sum(map(int, fields[SPENT]))
    family, before = {os.getpid()}, set()
    while family != before:
        before = set(family)
        family |= {pid for pid, (parent, _) in processes.items() if parent in before}
    return sum(processes[pid][1] for pid in family if pid in processes) / TICKS
