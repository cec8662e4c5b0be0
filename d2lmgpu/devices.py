"""Which devices there are, and the one rule that picks them.

A device is a GPU or, on a machine without one, a CPU core that runs with one thread.
``D2LMGPU_DEVICES`` chooses: ``auto`` (the GPUs if there are any, else the cores), ``gpu``,
``cpu`` (the cores) or ``cpu:N`` (N devices on the CPU; those past the number of cores share the
cores, so their arithmetic is exact and their speed is not: they are *simulated*).

The backends pass in how many GPUs their framework sees; nothing here imports a framework.
"""

import math
import numbers
import os
import re

VARIABLE = "D2LMGPU_DEVICES"


class DeviceError(ValueError):
    """A device was asked for that this machine or ``D2LMGPU_DEVICES`` does not give."""


class RunError(ValueError):
    """A training run was asked for that cannot be right."""


def num_cores() -> int:
    """Number of CPU cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def is_count(value) -> bool:
    """Whether ``value`` is a whole number from 1 up, of Python or NumPy; a bool is none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= 1


def available(gpus: int) -> tuple[str, int]:
    """``(kind, number)`` of the devices to use where a framework sees ``gpus`` GPUs.

    ``kind`` is ``'gpu'`` or ``'cpu'``. Without a GPU there are never fewer than two devices, so
    that every run of the course has its second one; on a single core it is simulated.

    Raises DeviceError for an unknown ``D2LMGPU_DEVICES`` and for ``gpu`` where there is none.
    """
    choice = os.environ.get(VARIABLE, "auto")
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


def check_index(i: int, gpus: int) -> str:
    """Kind of device number ``i``; DeviceError if there is no such device."""
    check_count(i + 1 if isinstance(i, numbers.Integral) and i >= 0 else i, gpus, what="device")
    return available(gpus)[0]


def check_count(k: int, gpus: int, what: str = "devices") -> str:
    """Kind of the first ``k`` devices; DeviceError if there are not that many."""
    if not is_count(k):
        allowed = "an index from 0 up" if what == "device" else "a whole number from 1 up"
        raise DeviceError(f"{k!r} is not a number of devices that can be had: give {allowed}.")
    kind, have = available(gpus)
    if k > have:
        names = ", ".join(f"{kind}({i})" for i in range(min(have, 8))) + (", …" * (have > 8))
        raise DeviceError(
            f"{k} devices were asked for, there are {have}: {names}. "
            f"Set {VARIABLE}=cpu:{k} to simulate {k} devices on the CPU."
        )
    return kind


def check_run(num_gpus: int, batch_size: int, lr: float, num_epochs: int | None = None) -> None:
    """Refuse a training run that cannot be right.

    ``batch_size`` is the global batch in examples, ``lr`` the learning rate, ``num_epochs`` None
    where the profile says how many. A ragged *last* batch is fine; a batch that leaves a device
    without work in every step is not.

    Raises RunError that names the value and what is allowed. How many devices there are is
    checked where they are picked.
    """
    whole = {"num_gpus": num_gpus, "batch_size": batch_size}
    if num_epochs is not None:
        whole["num_epochs"] = num_epochs
    for name, value in whole.items():
        if not is_count(value):
            raise RunError(f"{name}={value!r}: give a whole number from 1 up.")
    if not isinstance(lr, numbers.Real) or not math.isfinite(lr) or lr <= 0:
        raise RunError(f"lr={lr!r}: the learning rate must be a finite number above 0.")
    if batch_size < num_gpus:
        raise RunError(
            f"batch_size={batch_size} is below num_gpus={num_gpus}: some devices would never get "
            f"an example. Give a batch of at least {num_gpus}, or use {batch_size} devices."
        )


def overlap(k: int, gpus: int) -> str:
    """How the shards of a run on ``k`` devices share time: what its timings may be used for.

    ``'one device'``, ``'in parallel'`` (timings are measurements) or ``'simulated'`` (more
    devices than cores: the arithmetic is exact, a speedup must not be read off).
    """
    if k == 1:
        return "one device"
    kind, _ = available(gpus)
    return "in parallel" if kind == "gpu" or k <= num_cores() else "simulated"
