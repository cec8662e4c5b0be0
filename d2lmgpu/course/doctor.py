"""``d2lmgpu doctor``: what this machine has, and what to do about what is missing.

Every line says one fact. Whatever would stop a chapter is repeated at the end as a problem with
its remedy, and makes the exit status 1.
"""

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass

from d2lmgpu import __version__
from d2lmgpu.backend import INSTALL
from d2lmgpu.data.datasets import describe
from d2lmgpu.data.files import DATA_SETS, DataError, locate, read
from d2lmgpu.machine import devices, profiles
from d2lmgpu.machine.cache import cache
from d2lmgpu.machine.devices import DeviceError, num_cores
from d2lmgpu.machine.hardware import installed_gpus
from d2lmgpu.machine.profiles import ProfileError
from d2lmgpu.process.settings import TITLES
from d2lmgpu.records.run import counted

SECONDS = 60  # after which a framework that is being imported counts as hung

GPU_BUILD = {
    "torch": "the CUDA build that PyTorch's install page names for your driver",
    "mxnet": "the packages of requirements-gpu.txt, in an environment of their own",
}
VARIABLES = {
    devices.VARIABLE: "which devices: auto, gpu, cpu, gpu:N, cpu:N or a list of these; "
    "not set, it is auto",
    profiles.VARIABLE: "how much data and how many epochs: auto, quick, full or test; "
    "not set, it is auto",
    profiles.CAP: "at most so many training images; not set, as many as the profile says",
    "D2LMGPU_DATA": "the one folder in which the data is; not set, the usual places are searched",
    "D2LMGPU_CACHE": "where downloads are kept; not set, it is in the user's cache folder",
    "D2LMGPU_PREDICTIONS": "where predictions are kept; not set, it is in the user's data folder",
    "D2LMGPU_CLUSTER": "where hosts in one box are kept; not set, it is /run/d2lmgpu-cluster",
}
# What d2l.seed, the lab, the build of the book and the hub set for the processes that they start.
INTERNAL = {
    "D2LMGPU_EVENTS",
    "D2LMGPU_BOOK",
    "D2LMGPU_LEASE",
    "D2LMGPU_PYTHON_TORCH",
    "D2LMGPU_PYTHON_MXNET",
    "D2LMGPU_SEED",
    "D2LMGPU_MEETING",
    "D2LMGPU_WATCH",
}

# In a process of its own, imported just as a chapter imports it.
PROBE = """
import json
try:
    from d2lmgpu import {name} as d2l
    import {name}
    answer = {{"version": {name}.__version__, "gpus": d2l.num_gpus()}}
except ModuleNotFoundError as error:
    if error.name != "{name}":
        raise
    answer = {{}}
print(json.dumps(answer))
"""


@dataclass
class Framework:
    """What a framework says of itself. version None: it is not installed, or see ``problem``."""

    name: str
    version: str | None = None
    gpus: int = 0
    problem: str | None = None


def probe(name: str, seconds: float = SECONDS) -> Framework:
    """Ask ``"torch"`` or ``"mxnet"`` in a process of its own, for at most so many seconds."""
    command = [sys.executable, "-c", PROBE.format(name=name)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Framework(name, problem=f"its import takes more than {seconds:g} seconds")
    if done.returncode:
        last = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Framework(name, problem=f"it cannot be imported: {last[-1]}")
    return Framework(name, **json.loads(done.stdout.splitlines()[-1]))


def unusable(title: str, problem) -> tuple[str, list[str]]:
    """The line and the problem of what would stop a chapter."""
    return f"{title}: unusable, see below", [f"{title}: {problem}"]


def check_framework(framework: Framework, there: int) -> tuple[str, list[str]]:
    """One line on a framework and its devices, and its problems; ``there`` GPUs are installed."""
    title = TITLES[framework.name]
    install = f"To install it: {INSTALL[framework.name]}"
    if framework.problem:
        return unusable(title, f"{framework.problem}. {install}")
    if framework.version is None:
        return f"{title}: not installed. Its chapters do not run. {install}", []
    title = f"{title} {framework.version}"
    try:
        kind, number = devices.available(framework.gpus)
    except DeviceError as error:
        return unusable(title, error)
    if kind != "cpu":
        return f"{title}: {on_gpus(number, framework.gpus)}", []
    line = f"{title}: {counted(number, 'CPU device')}, {overlapping(number)}"
    if framework.gpus:
        line += f" ({counted(framework.gpus, 'GPU')} left alone, as {devices.VARIABLE} says)"
    elif there:
        line += f". It does not see the GPU: that takes {GPU_BUILD[framework.name]}"
    return line, []


def on_gpus(number: int, gpus: int) -> str:
    """Which devices there are where some of ``gpus`` are used, and what runs on them can be."""
    if devices.own_gpus(number, gpus):
        return f"{counted(number, 'GPU')}, each a device"
    names = ", ".join(f"{kind}({i})" for kind, i in devices.places(gpus))
    measured = devices.num_measured(gpus)
    past = f"; runs on more than {measured} are simulated" if measured < number else ""
    return f"{counted(number, 'device')}, {names}{past}"


def overlapping(number: int) -> str:
    """What runs on CPU devices can be: measured or simulated."""
    cores = num_cores()
    if number <= cores:
        return f"one core each; more devices are simulated ({devices.VARIABLE}=cpu:N)"
    return f"but {counted(cores, 'core')}: runs on more than {cores} are simulated"


def check_data(name: str) -> tuple[str, list[str]]:
    """One line on where a data set is, every file of it read and checked, and its problems."""
    data_set = DATA_SETS[name]
    try:
        line = describe(name)
        if place := locate(data_set, os.environ.get("D2LMGPU_DATA"), cache()):
            for i, path in enumerate(place[1]):
                read(data_set, i, path)
            line += ", complete"
        return line, []
    except DataError as error:
        return unusable(data_set.title, error)


def check_profile(gpus: int) -> tuple[str, list[str]]:
    """One line on how much data and how many epochs a run uses, and its problems."""
    try:
        return f"Runs: {profiles.profile(gpus)}", []
    except ProfileError as error:
        return unusable("Runs", error)


def check_variables() -> tuple[list[str], list[str]]:
    """A line for each variable of the course, with its value, and the unknown ones as problems."""
    values = {name: f"={os.environ[name]}" if name in os.environ else "" for name in VARIABLES}
    lines = [f"{name}{values[name]}: {meaning}" for name, meaning in VARIABLES.items()]
    ours = {name for name in os.environ if name.startswith("D2LMGPU_")}
    problems = [
        f"{name} is set, but unknown. Unset it; known are {', '.join(VARIABLES)}."
        for name in sorted(ours - set(VARIABLES) - INTERNAL)
    ]
    return lines, problems


def examine(frameworks: list[Framework], gpus: list[str]) -> tuple[list[str], list[str]]:
    """All lines and all problems, given what was found out about frameworks and GPUs."""
    system = f"{platform.system()} {platform.machine()}"
    lines = [
        f"d2lmgpu {__version__} on Python {platform.python_version()}",
        f"Machine: {system}, {counted(num_cores(), 'CPU core')}",
        f"GPUs: {'; '.join(gpus) or 'none'}",
    ]
    gpus_in_use = max(framework.gpus for framework in frameworks)
    checks = [check_framework(framework, len(gpus)) for framework in frameworks]
    checks += [check_profile(gpus_in_use), *map(check_data, DATA_SETS)]
    lines += [line for line, _ in checks]
    problems = [problem for _, of_check in checks for problem in of_check]
    if not any(framework.version or framework.problem for framework in frameworks):
        remedies = "; or: ".join(INSTALL[framework.name] for framework in frameworks)
        problems.append(f"Neither PyTorch nor MXNet is installed. One is needed: {remedies}")
    settings, unknown = check_variables()
    return lines + settings, problems + unknown


def main() -> int:
    """Print every line, then every problem; returns 1 if there is one."""
    lines, problems = examine([probe(name) for name in TITLES], installed_gpus())
    print(*lines, sep="\n")
    if not problems:
        print("No problem found.")
        return 0
    print(f"{counted(len(problems), 'problem')}:")
    print(*(f"- {problem}" for problem in problems), sep="\n")
    return 1
