"""Which server holds which GPU: plain functions and one table, so that no GPU is promised twice.

Nothing here knows JupyterHub. The spawner calls ``lease`` when a server starts, ``free`` when it
is gone (and before each start) and ``restore`` when the hub comes back up.
"""

import subprocess

GpuIds = tuple[str, ...]


class Refused(ValueError):
    """A request that cannot be met. ``status`` is the HTTP status, ``reason`` one word for it."""

    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status, self.reason = status, reason


class GpuSlots:
    """The table of leases: owner (a server's name) -> the GPU ids that it holds."""

    def __init__(self):
        self.leases: dict[str, GpuIds] = {}

    def free_gpus(self, present: GpuIds) -> GpuIds:
        """Those of the ``present`` GPUs that no server holds, in the machine's order."""
        held = {gpu for gpus in self.leases.values() for gpu in gpus}
        return tuple(gpu for gpu in present if gpu not in held)

    def lease(self, owner: str, count: int, present: GpuIds, most: int | None = None) -> GpuIds:
        """Promise ``count`` of the ``present`` GPUs to ``owner``, at most ``most`` per server.

        Raises ``Refused`` (409) if there are too few, or if ``owner`` still holds a lease, which
        would be lost from the table: ``free`` it first, as the spawner does before every start.
        """
        if owner in self.leases:
            raise Refused(409, "still-held", f"{owner} still holds GPUs: stop that server first.")
        if most is not None and count > most:
            message = f"You asked for {_gpus(count)}; here a learner gets at most {most}."
            raise Refused(409, "over-quota", message)
        if count > len(present):
            raise Refused(
                409,
                "too-few",
                f"You asked for {_gpus(count)}; this machine has {len(present)}."
                " Every chapter also runs with 0 GPUs, on the CPU's cores.",
            )
        free = self.free_gpus(present)
        if count > len(free):
            raise Refused(
                409,
                "too-few",
                f"You asked for {_gpus(count)}; {len(free)} of {len(present)} are free now."
                " Choose fewer, or wait until a server stops.",
            )
        if count:
            self.leases[owner] = free[:count]
        return free[:count]

    def free(self, owner: str) -> None:
        """End the lease of ``owner``, if it has one."""
        self.leases.pop(owner, None)

    def restore(self, owner: str, gpus) -> None:
        """Put back a lease that was saved before the hub restarted.

        Two saved leases may name one GPU if the hub died between a server's end and writing it
        down. Both claims count until the hub has seen which server is gone, so ``lease`` cannot
        promise that GPU meanwhile.
        """
        if gpus:
            self.leases[owner] = tuple(gpus)


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


def choices(total: int, most: int | None = None) -> list[int]:
    """The counts offered in the form: 0, 1, 2, 4 … and all that one learner may have."""
    top = total if most is None else min(total, most)
    powers = [2**i for i in range(top.bit_length()) if 2**i <= top]
    return sorted({0, top, *powers})


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
        message = "nvidia-smi gave no answer in 30 s; tell your instructor."
        raise Refused(503, "driver", message) from None
    if answer.returncode:
        said = (answer.stdout + answer.stderr).strip().splitlines()
        raise Refused(
            503,
            "driver",
            f"The GPU driver does not answer ({said[0] if said else 'no message'});"
            " tell your instructor. Starting with 0 GPUs still works.",
        )
    return tuple(answer.stdout.split())


def _gpus(count):
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
