"""Which server holds which GPU: plain functions and one table, so that no GPU is promised twice.

The spawner calls ``lease`` when a server starts, ``free`` when it is gone (and before each start)
and ``restore`` when the hub comes back up.
"""

import subprocess
import sys
import time
from dataclasses import dataclass

from jupyterhub.spawner import SpawnException

GpuIds = tuple[str, ...]
NO_LIMIT = sys.maxsize  # the GPUs of one learner: all that there are
UNITS = (("day", 86400), ("hour", 3600), ("minute", 60))  # seconds
# What a choice of none means, for the form.
WITHOUT = (
    "With 0 GPUs every chapter runs, too: each CPU core is a device then, a speedup is measured on"
    " as many devices as there are cores, more are simulated. All who work here share these cores."
)


class Refused(SpawnException):
    """A request that cannot be met: its HTTP status, one word for the log, words for the page."""

    def __init__(self, status, reason, message):
        super().__init__(message, reason=reason, status_code=status)
        # What a page says later, when the browser comes back to it, is this attribute.
        self.jupyterhub_message = message


@dataclass(frozen=True)
class Lease:
    """The ids of GPUs that one server holds, and since when, in seconds since 1970."""

    gpus: GpuIds
    since: float


class GpuSlots:
    """The table of leases: owner (a server's name) -> its ``Lease``."""

    def __init__(self):
        self.leases: dict[str, Lease] = {}

    def free_gpus(self, present: GpuIds) -> GpuIds:
        """Those of the ``present`` GPUs that no server holds, in the machine's order."""
        held = {gpu for lease in self.leases.values() for gpu in lease.gpus}
        return tuple(gpu for gpu in present if gpu not in held)

    def availability(self, present: GpuIds, kind: str = "GPUs") -> str:
        """How many of the ``present`` GPUs are free, and for how long who holds the others."""
        free = len(self.free_gpus(present))
        text = f"{free} of {len(present)} {kind} {'is' if free == 1 else 'are'} free now"
        holders = [
            f"{owner} has held {count} for {duration(time.time() - lease.since)}"
            for owner, lease in self.leases.items()
            if (count := len(set(lease.gpus) & set(present)))
        ]
        return f"{text}: {', '.join(holders)}" if holders else text

    def lease(self, owner: str, count: int, present: GpuIds, most: int = NO_LIMIT) -> GpuIds:
        """Promise ``count`` of the ``present`` GPUs to ``owner``, at most ``most`` per server.

        Raises ``Refused`` (409) if there are too few, or if ``owner`` still holds a lease, which
        would be lost from the table: ``free`` it first, as the spawner does before every start.
        """
        if owner in self.leases:
            raise Refused(409, "still-held", f"{owner} still holds GPUs: stop that server first.")
        free = self.free_gpus(present)
        asked = f"You asked for {count} GPU{'' if count == 1 else 's'}"
        if count > most:
            raise Refused(409, "over-quota", f"{asked}; here a learner gets at most {most}.")
        if count > len(present):
            advice = "Every chapter also runs with 0 GPUs, on the CPU's cores."
            raise Refused(409, "too-few", f"{asked}; this machine has {len(present)}. {advice}")
        if count > len(free):
            advice = "Choose fewer, or wait until a server stops."
            raise Refused(409, "too-few", f"{asked}; {self.availability(present)}. {advice}")
        if count:
            self.leases[owner] = Lease(free[:count], time.time())
        return free[:count]

    def free(self, owner: str) -> None:
        """End the lease of ``owner``, if it has one."""
        self.leases.pop(owner, None)

    def restore(self, owner: str, gpus, since: float) -> None:
        """Put back a lease, which began at ``since``, that was saved before the hub restarted.

        Two saved leases may name one GPU if the hub died between a server's end and writing it
        down. Both claims count until the hub has seen which server is gone, so ``lease`` cannot
        promise that GPU meanwhile.
        """
        if gpus:
            self.leases[owner] = Lease(tuple(gpus), since)


def duration(seconds: float) -> str:
    """``seconds`` in the largest unit of which there is one, such as "25 minutes"."""
    for unit, length in UNITS:
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def requested(options) -> int:
    """The GPU count in a server's start options: ``{}`` is 0, ``{"gpus": n}`` is n.

    A request by REST brings whatever its sender wrote, so everything else is ``Refused`` (400).
    """
    if not isinstance(options, dict) or set(options) - {"gpus"}:
        raise Refused(400, "bad-options", f"Unknown start options {options!r}: send {{'gpus': n}}.")
    count = options.get("gpus", 0)
    if type(count) is not int or count < 0:  # bool is an int to isinstance
        raise Refused(400, "bad-options", f"gpus must be a whole number from 0 on, not {count!r}.")
    return count


def choices(total: int, most: int = NO_LIMIT) -> list[int]:
    """The counts offered in the form: 0, 1, 2, 4 … and all that one learner may have."""
    top = min(total, most)
    return sorted({0, top, *(2**i for i in range(top.bit_length()))})


def proposed(counts: list[int], free: int) -> int:
    """The count that the form proposes: 2 if there are, and never the last free GPU.

    Whoever just presses Start leaves one to the next learner.
    """
    return max(count for count in counts if count <= max(0, min(2, free - 1)))


def environment(gpus: GpuIds, simulated: bool = False) -> dict[str, str]:
    """What makes a server see its own GPUs only, and d2lmgpu count the same devices."""
    if simulated:
        devices = f"cpu:{len(gpus)}" if gpus else "cpu"
        return {"CUDA_VISIBLE_DEVICES": "", "D2LMGPU_DEVICES": devices}
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        "D2LMGPU_DEVICES": "gpu" if gpus else "cpu",
    }


def present_gpus() -> GpuIds:
    """The ids (``GPU-…``) of the GPUs that the driver reports now; none without a driver.

    Ids, not numbers: when one GPU fails, the numbers of the others move and the ids do not.
    Raises ``Refused`` (503) if there is a driver that does not answer.
    """
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        return ()
    except subprocess.TimeoutExpired:
        reason = "nothing in 30 s"
    else:
        if not answer.returncode:
            return tuple(answer.stdout.split())
        reason = (answer.stdout + answer.stderr).strip().partition("\n")[0]
    trouble = f"The GPU driver does not answer ({reason or 'no message'}): tell your instructor."
    raise Refused(503, "driver", f"{trouble} Starting with 0 GPUs still works.")
