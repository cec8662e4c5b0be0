"""Which devices there are, and the one rule that picks them.

A device is a GPU or, on a machine without one, a CPU core that runs with one thread.
``D2LMGPU_DEVICES`` chooses: ``auto`` (the GPUs if there are any, else the cores; also where it is
empty or not set), ``gpu``, ``cpu`` (the cores) or ``cpu:N`` (N devices on the CPU; those past the
number of cores share the cores, so their arithmetic is exact and their speed is not: they are
*simulated*).

The backends pass in how many GPUs their framework sees; nothing here imports a framework.
"""

import os
import re

from d2lmgpu.machine.checks import is_count, is_real, is_whole
from d2lmgpu.machine.hardware import num_cores

VARIABLE = "D2LMGPU_DEVICES"


class DeviceError(ValueError):
    """A device was asked for that this machine or ``D2LMGPU_DEVICES`` does not give."""


class RunError(ValueError):
    """A training run was asked for that cannot be right."""


def available(gpus: int) -> tuple[str, int]:
    """``(kind, number)`` of the devices to use where a framework sees ``gpus`` GPUs.

    ``kind`` is ``'gpu'`` or ``'cpu'``. Without a GPU there are never fewer than two devices, so
    that every run of the course has its second one; on a single core it is simulated.

    Raises DeviceError for an unknown ``D2LMGPU_DEVICES`` and for ``gpu`` where there is none.
    """
    choice = os.environ.get(VARIABLE) or "auto"
    if choice == "gpu" and not gpus:
        raise DeviceError(
            f"{VARIABLE}=gpu, but this framework sees no GPU. "
            f"Unset {VARIABLE} or set it to cpu to use the {num_cores()} CPU cores as devices."
        )
    if choice == "gpu" or (choice == "auto" and gpus):
        return "gpu", gpus
    if choice in ("auto", "cpu"):
        return "cpu", max(2, num_cores())
    if match := re.fullmatch(r"cpu:([1-9]\d*)", choice):
        return "cpu", int(match[1])
    raise DeviceError(
        f"{VARIABLE}={choice!r} is unknown. Allowed: auto, gpu, cpu, or cpu:N with N from 1 up."
    )


def check_number(k, allowed="a whole number from 1 up") -> None:
    """DeviceError unless ``k`` is a number of devices, here or elsewhere."""
    if not is_count(k):
        raise DeviceError(f"{k!r} is not a number of devices that can be had: give {allowed}.")


def check_count(k: int, gpus: int) -> str:
    """Kind of the first ``k`` devices; DeviceError if there are not that many."""
    check_number(k)
    kind, have = available(gpus)
    if k > have:
        names = ", ".join(f"{kind}({i})" for i in range(min(have, 8))) + (", …" * (have > 8))
        raise DeviceError(
            f"{k} devices were asked for, there are {have}: {names}. "
            f"Set {VARIABLE}=cpu:{k} to simulate {k} devices on the CPU."
        )
    return kind


def check_index(i: int, gpus: int) -> str:
    """Kind of device number ``i``; DeviceError if there is no such device."""
    check_number(i + 1 if is_whole(i) else i, "an index from 0 up")
    return check_count(i + 1, gpus)


def on_this_host(i):
    """The number here of device ``i``: that of a rank is its local rank, else it is ``i`` itself.

    So ``try_gpu(rank)`` is a device of its own for each rank on several hosts, too, under
    ``launch`` as under torchrun.
    """
    rank, local, number = map(os.environ.get, ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if rank and local and number and is_whole(i):
        first = int(rank) - int(local)
        if first <= i < first + int(number):
            return i - first
    return i


def check_run(num_gpus: int, batch_size: int, lr: float, num_epochs: int | None = None) -> None:
    """Refuse a training run that cannot be right: RunError names the value and what is allowed.

    ``batch_size`` is the global batch in examples, ``lr`` the learning rate, ``num_epochs`` None
    where the profile says how many. A ragged *last* batch is fine; a batch that leaves a device
    without work in every step is not. How many devices there are is checked where they are picked.
    """
    whole = {"num_gpus": num_gpus, "batch_size": batch_size, "num_epochs": num_epochs}
    for name, value in whole.items():
        if not is_count(value) and not (name == "num_epochs" and value is None):
            raise RunError(f"{name}={value!r}: give a whole number from 1 up.")
    if not is_real(lr) or lr <= 0:
        raise RunError(f"lr={lr!r}: the learning rate must be a finite number above 0.")
    if batch_size < num_gpus:
        raise RunError(
            f"batch_size={batch_size} is below num_gpus={num_gpus}: some devices would never get "
            f"an example. Give a batch of at least {num_gpus}, or use {batch_size} devices."
        )


def sharing(k: int, gpus: int) -> str:
    """How the shards of a run on ``k`` devices share time: what its timings may be used for.

    ``'one device'``, ``'in parallel'`` (timings are measurements) or ``'simulated'`` (more
    devices than cores: the arithmetic is exact, a speedup must not be read off).

    Raises DeviceError if ``k`` is no whole number from 1 up.
    """
    check_number(k)
    if k == 1:
        return "one device"
    kind, _ = available(gpus)
    return "in parallel" if kind == "gpu" or k <= num_cores() else "simulated"
