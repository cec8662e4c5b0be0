"""What Slurm says of a job, asked by its own commands and put in words."""

import os
import re
import shutil
import subprocess
import time

from d2lmgpu.process.cluster.state import slurm_command
from d2lmgpu.process.failures import LaunchError

COMPLETE = 3  # seconds that an ended job may take to leave its nodes
ENDED = {
    "CANCELLED": "was cancelled, by scancel or by an administrator",
    "TIMEOUT": "has reached its time limit: ask for more time=",
    "NODE_FAIL": "has lost a node",
    "PREEMPTED": "had to make room for another job",
    "OUT_OF_MEMORY": "took more memory than it was given",
}

NEVER = {
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "PartitionConfig",
    "PartitionDown",
    "BadConstraints",
}
HAS = "%R: %D nodes with %G and %c cores, for at most %l"  # in the words of sinfo's --format


def check_installed() -> None:
    """Raises LaunchError where no Slurm can be asked."""
    if not shutil.which("salloc"):
        raise LaunchError(
            "There is no Slurm here: the program salloc is not installed. Start the notebook on a "
            "cluster's login node, or have one in a box, by `d2lmgpu cluster up --slurm`."
        )
    conf = os.environ.get("SLURM_CONF")
    if conf and not os.path.exists(conf):  # salloc would look for it for a minute
        raise LaunchError(f"SLURM_CONF={conf}: there is no such file. It configures Slurm.")


def command(program) -> list:
    return [*slurm_command(), program]


def environ() -> dict[str, str]:
    """This process's environment without that of a job in which it may itself run."""
    ours = {"SLURM_CONF"}
    return {k: v for k, v in os.environ.items() if k in ours or not k.startswith("SLURM_")}


def ask(*words) -> list[str]:
    """The lines that a command of Slurm prints. Raises LaunchError with what it says instead."""
    done = subprocess.run(
        [*command(words[0]), *words[1:]], env=environ(), text=True, capture_output=True
    )
    if done.returncode:
        raise LaunchError(f"{words[0]} failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def hosts_of(number) -> list[str]:
    """The names of a job's nodes. Raises LaunchError for a job that does not run."""
    check_installed()
    fields = look_up(number, "%T|%N")
    state, nodes = fields.split("|") if fields else ("not there", "")
    if state != "RUNNING":
        raise LaunchError(f"Job {number} is {state.lower()}: squeue lists those that run.")
    return ask("scontrol", "show", "hostnames", nodes)


def look_up(number, form) -> str | None:
    """What squeue knows of a job, in the form of its option --format; None if it knows no such."""
    try:
        lines = ask("squeue", "--noheader", "--states=all", f"--jobs={number}", f"--format={form}")
    except LaunchError as error:
        if "Invalid job id" not in str(error):
            raise
        return None
    return lines[0] if lines else None


def place_of(number) -> str | None:
    """Where a job stands that waits, and how to cancel it; None where that is not known.

    Raises LaunchError for one that asks for more than its partition ever gives. That Slurm does not
    answer is no reason to leave the queue.
    """
    try:
        if not (fields := number and look_up(number, "%r|%P|%S")):
            return None
        why, partition, start = fields.split("|")
        waiting = ask(
            "squeue",
            "--noheader",
            "--states=PENDING",
            f"--partition={partition}",
            "--sort=-p,i",
            "--format=%i",
        )
    except LaunchError:
        return None
    if why in NEVER:
        raise LaunchError(refusal(f"job {number} would wait for ever ({why})"))
    before = waiting.index(str(number)) if str(number) in waiting else 0
    when = "" if start == "N/A" else f" Slurm expects to start it at {start}."
    return (
        f"Job {number} waits in the partition {partition} ({why}), with {before} before it.{when}"
        f" To cancel it, interrupt this cell, or: scancel {number}"
    )


def why_ended(number) -> str | None:
    """Why a job has ended before its time, None for one that runs, or where Slurm is silent."""
    deadline = time.monotonic() + COMPLETE
    try:
        while (state := look_up(number, "%T")) == "COMPLETING" and time.monotonic() < deadline:
            time.sleep(0.1)  # what it will have been is not told yet
    except LaunchError:
        return None
    if state in (None, "RUNNING"):
        return None
    return f"Job {number} {ENDED.get(state, f'has ended ({state.lower()})')}."


def refusal(words) -> str:
    """Slurm's own words for why it gave no nodes, and what it has."""
    lines = [re.sub("^salloc: (error|fatal): ", "", line) for line in words.splitlines()]
    reasons = ", ".join(line for line in lines if not line.startswith("salloc: "))
    try:
        rows = ask("sinfo", "--noheader", f"--format={HAS}")
        there = f" There is: {'; '.join(rows)}."
    except LaunchError:
        there = ""  # no Slurm answers
    return f"Slurm gave no nodes: {reasons.rstrip('.')}.{there}"


def cancel(number) -> None:
    """Cancel a job, whatever it does."""
    subprocess.run([*command("scancel"), str(number)], env=environ(), capture_output=True)
