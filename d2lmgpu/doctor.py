"""``python -m d2lmgpu doctor``: what this machine has, and what to do about what is missing.

Every line says one fact. Whatever would stop a chapter is repeated at the end as a problem with
its remedy, and makes the exit status 1.
"""

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass

from d2lmgpu import __version__, devices, profiles
from d2lmgpu.data import describe
from d2lmgpu.datafiles import KNOWN, DataError, cache, locate, read
from d2lmgpu.devices import DeviceError, num_cores
from d2lmgpu.helpers import INSTALL
from d2lmgpu.profiles import ProfileError

SECONDS = 60  # after which a framework that is being imported counts as hung

TITLES = {"torch": "PyTorch", "mxnet": "MXNet"}
GPU_BUILD = {
    "torch": "the CUDA build that PyTorch's install page names for your driver",
    "mxnet": "the packages of requirements-gpu.txt, in an environment of their own",
}
VARIABLES = {
    devices.VARIABLE: "which devices: auto, gpu, cpu or cpu:N; not set, it is auto",
    profiles.VARIABLE: "how much data and how many epochs: auto, quick, full or test; "
    "not set, it is auto",
    profiles.CAP: "at most so many training images; not set, as many as the profile says",
    "D2LMGPU_DATA": "the one folder in which the data is; not set, the usual places are searched",
    "D2LMGPU_CACHE": "where downloads are kept; not set, it is in the user's cache folder",
}
# What the lab, the build of the book and the hub set for the processes that they start.
INTERNAL = {
    "D2LMGPU_EVENTS", "D2LMGPU_BOOK", "D2LMGPU_LEASE", "D2LMGPU_PYTHON_TORCH",
    "D2LMGPU_PYTHON_MXNET",
}  # fmt: skip
BELOW = "unusable, see below"

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
    answer = None
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
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Framework(name, problem=f"it cannot be imported: {said[-1]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return Framework(name, **answer) if answer else Framework(name)


def installed_gpus() -> list[str]:
    """The GPUs that the driver lists, one line each; none without a driver."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if listed.returncode:
        return []
    return [line.split(" (UUID")[0].strip() for line in listed.stdout.splitlines() if line.strip()]


def check_framework(framework: Framework, there: int) -> tuple[str, list[str]]:
    """One line on a framework and its devices, and its problems; ``there`` GPUs are installed."""
    title = TITLES[framework.name]
    install = f"To install it: {INSTALL[framework.name]}"
    if framework.problem:
        return f"{title}: {BELOW}", [f"{title}: {framework.problem}. {install}"]
    if framework.version is None:
        return f"{title}: not installed. Its chapters do not run. {install}", []
    title = f"{title} {framework.version}"
    try:
        kind, number = devices.available(framework.gpus)
    except DeviceError as error:
        return f"{title}: {BELOW}", [f"{title}: {error}"]
    if kind == "gpu":
        return f"{title}: {count(number, 'GPU')}, each a device", []
    line = f"{title}: {count(number, 'CPU device')}, {overlapping(number)}"
    if framework.gpus:
        line += f" ({count(framework.gpus, 'GPU')} left alone, as {devices.VARIABLE} says)"
    elif there:
        line += f". It does not see the GPU: that takes {GPU_BUILD[framework.name]}"
    return line, []


def overlapping(number: int) -> str:
    """What runs on CPU devices can be: measured or simulated."""
    cores = num_cores()
    if number <= cores:
        return f"one core each; more devices are simulated ({devices.VARIABLE}=cpu:N)"
    return f"but {count(cores, 'core')}: runs on more than {cores} are simulated"


def check_data(name: str) -> tuple[str, list[str]]:
    """One line on where a data set is, every file of it read and checked, and its problems."""
    known = KNOWN[name]
    try:
        line = describe(name)
        if place := locate(known, os.environ.get("D2LMGPU_DATA"), cache()):
            for i, path in enumerate(place[1]):
                read(known, i, path)
            line += ", complete"
        return line, []
    except DataError as error:
        return f"{known.title}: {BELOW}", [f"{known.title}: {error}"]


def check_profile(gpus: int) -> tuple[str, list[str]]:
    """One line on how much data and how many epochs a run uses, and its problems."""
    try:
        return f"Runs: {profiles.profile(gpus)}", []
    except ProfileError as error:
        return f"Runs: {BELOW}", [str(error)]


def check_variables() -> tuple[list[str], list[str]]:
    """A line for each variable of the course, with its value, and the unknown ones as problems."""
    lines = []
    for name, meaning in VARIABLES.items():
        value = os.environ.get(name)
        lines.append(f"{name}{'' if value is None else f'={value}'}: {meaning}")
    unknown = sorted(
        name for name in os.environ
        if name.startswith("D2LMGPU_") and name not in VARIABLES and name not in INTERNAL
    )  # fmt: skip
    allowed = ", ".join(VARIABLES)
    problems = [f"{name} is set, but unknown. Unset it; known are {allowed}." for name in unknown]
    return lines, problems


def examine(frameworks: list[Framework], gpus: list[str]) -> tuple[list[str], list[str]]:
    """All lines and all problems, given what was found out about frameworks and GPUs."""
    machine = f"{platform.system()} {platform.machine()}, {count(num_cores(), 'CPU core')}"
    lines = [
        f"d2lmgpu {__version__} on Python {platform.python_version()}",
        f"Machine: {machine}",
        f"GPUs: {'; '.join(gpus) or 'none'}",
    ]
    problems = []
    seen = max(framework.gpus for framework in frameworks)
    checks = [check_framework(framework, len(gpus)) for framework in frameworks]
    checks += [check_profile(seen), *map(check_data, KNOWN)]
    for line, found in checks:
        lines.append(line)
        problems += found
    if not any(framework.version or framework.problem for framework in frameworks):
        remedies = "; or: ".join(INSTALL[framework.name] for framework in frameworks)
        problems.append(f"Neither PyTorch nor MXNet is installed. One is needed: {remedies}")
    settings, found = check_variables()
    return lines + settings, list(dict.fromkeys(problems + found))


def count(n: int, noun: str) -> str:
    """``n`` things, in words: 1 core, 2 cores."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def main() -> int:
    """Print every line, then every problem; returns 1 if there is one."""
    lines, problems = examine([probe(name) for name in TITLES], installed_gpus())
    print(*lines, sep="\n")
    if not problems:
        print("No problem found.")
        return 0
    print(f"{count(len(problems), 'problem')}:")
    print(*(f"- {problem}" for problem in problems), sep="\n")
    return 1
