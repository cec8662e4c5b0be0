"""Which devices there are, and the one rule that picks them.

A device is a GPU or, on a machine without one, a CPU core that runs with one thread.
``D2LMGPU_DEVICES`` chooses: ``auto`` (the GPUs if there are any, else the cores; also where it is
empty or not set), ``gpu``, ``cpu`` (the cores), ``gpu:N`` (N devices on the GPUs in turn),
``cpu:N`` (N devices on the CPU) or several of these with commas between, one after another:
``gpu:1,cpu:2``. Devices that share a GPU, and those past the number of cores, take turns: their
arithmetic is exact and their speed is not, they are *simulated*.

The backends pass in how many GPUs their framework sees; nothing here imports a framework.
"""

import os
import re
from collections import Counter

from d2lmgpu.machine.checks import is_count, is_real, is_whole
from d2lmgpu.machine.hardware import num_cores

VARIABLE = "D2LMGPU_DEVICES"
MOST = 128  # devices: PyTorch has no more on a CPU


class DeviceError(ValueError):
    """A device was asked for that this machine or ``D2LMGPU_DEVICES`` does not give."""


class RunError(ValueError):
    """A training run that cannot be right: its settings, or its numbers."""


def places(gpus: int) -> list[tuple[str, int]]:
    """All devices to use where a framework sees ``gpus`` GPUs, each as kind and number.

    ``("gpu", 1)`` is GPU 1, again for each device on it; ``("cpu", 1)`` is a CPU device of its
    own. Without a GPU there are never fewer than two devices, so that every run of the course has
    its second one; on a single core it is simulated.

    Raises DeviceError for an unknown ``D2LMGPU_DEVICES`` and for GPUs where there is none.
    """
    choice = os.environ.get(VARIABLE) or "auto"
    parts = (("gpu" if gpus else "cpu") if choice == "auto" else choice).split(",")
    for part in parts:
        if not re.fullmatch(r"(gpu|cpu)(:[1-9]\d{0,2})?", part):
            raise DeviceError(
                f"{VARIABLE}={choice!r} is unknown: {part!r} names no devices. Allowed: auto, gpu, "
                f"cpu, gpu:N and cpu:N with N from 1 to {MOST}, and lists such as gpu:1,cpu:2."
            )
    if "gpu" in choice and not gpus:
        raise DeviceError(
            f"{VARIABLE}={choice}, but this framework sees no GPU. Unset {VARIABLE} or set it "
            f"to cpu to use the {num_cores()} CPU cores as devices; d2lmgpu doctor says more."
        )
    have, kinds = {"gpu": gpus, "cpu": min(max(2, num_cores()), MOST)}, []
    for part in parts:
        kind, _, number = part.partition(":")
        kinds += [kind] * int(number or have[kind])
    if len(kinds) > MOST:
        raise DeviceError(f"{VARIABLE}={choice} are {len(kinds)} devices: give at most {MOST}.")
    before, pairs = Counter(), []
    for kind in kinds:
        pairs.append((kind, before[kind] % gpus if kind == "gpu" else before[kind]))
        before[kind] += 1
    return pairs


def available(gpus: int) -> tuple[str, int]:
    """``(kind, number)`` of the devices: 'gpu', 'cpu' or 'mixed', and how many they are.

    Raises the errors of `places`.
    """
    kinds = [kind for kind, _ in places(gpus)]
    return "mixed" if len(set(kinds)) > 1 else kinds[0], len(kinds)


def check_number(k, allowed="a whole number from 1 up") -> None:
    """DeviceError unless ``k`` is a number of devices, here or elsewhere."""
    if not is_count(k):
        raise DeviceError(f"{k!r} is not a number of devices that can be had: give {allowed}.")


def first(k: int, gpus: int) -> list[tuple[str, int]]:
    """The first ``k`` of `places`; DeviceError if there are not that many."""
    check_number(k)
    have = places(gpus)
    if k > len(have):
        names = ", ".join(f"{kind}({i})" for kind, i in have[:8]) + (", …" * (len(have) > 8))
        on_gpus = f"{VARIABLE}=gpu:{k} to simulate {k} devices on the GPUs, or " if gpus else ""
        raise DeviceError(
            f"{k} devices were asked for, there are {len(have)}: {names}. "
            f"Set {on_gpus}{VARIABLE}=cpu:{k} to simulate {k} devices on the CPU."
        )
    return have[:k]


def place(i: int, gpus: int) -> tuple[str, int]:
    """Kind and number of device ``i``; DeviceError if there is no such device."""
    check_number(i + 1 if is_whole(i) else i, "an index from 0 up")
    return first(i + 1, gpus)[i]


def on_this_host(i) -> int:
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
    """Refuse a training run that cannot be right, and say what is allowed.

    A ragged *last* batch is fine; a batch that leaves a device without work in every step is not.
    How many devices there are is checked where they are picked.

    Parameters
    ----------
    num_gpus : int
        Devices.
    batch_size : int
        Global batch, in examples.
    lr : float
        Learning rate.
    num_epochs : int, optional
        None where the profile says how many.

    Raises
    ------
    RunError
        It names the value and what is allowed.
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

    ``'one device'``, ``'in parallel'`` (timings are measurements) or ``'simulated'`` (two devices
    on one GPU, or more on the CPU than cores: the arithmetic is exact, a speedup must not be read
    off). Raises the errors of `first`.
    """
    used = first(k, gpus)
    on_cpu = sum(kind == "cpu" for kind, _ in used)
    if k == 1:
        return "one device"
    return "simulated" if len(set(used)) < k or on_cpu > num_cores() else "in parallel"


def num_measured(gpus: int) -> int:
    """The most devices on which a run is not simulated: the first ones."""
    count = len(places(gpus))
    return sum(sharing(k, gpus) != "simulated" for k in range(1, count + 1))


def own_gpus(k: int, gpus: int) -> bool:
    """Whether each of the first ``k`` devices is a GPU of its own, as NCCL demands."""
    used = first(k, gpus)
    return len(set(used)) == k and all(kind == "gpu" for kind, _ in used)
