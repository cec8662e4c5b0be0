"""Hosts that Slurm gives: a job by ``salloc``, held while ``launch`` runs, and steps by ``srun``.

    the caller → salloc, which holds the job
               → srun for each node → the node's agent → …

salloc gives the job back when the caller closes its standard input, and when the caller is killed.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.machine.checks import Need, is_whole
from d2lmgpu.process.failures import LaunchError
from d2lmgpu.process.hosts import jobs
from d2lmgpu.process.hosts.ssh import agent

WITH_PARENT = [sys.executable, "-S", "-E", str(Path(__file__).with_name("with_parent.py"))]
FIRST_LOOK, LOOK = 1, 60  # seconds until a waiting job is looked up, and at most between looks
LEAVE = 8  # seconds that salloc has to give a job back
TIME = re.compile(r"\d+-\d+(:\d+){0,2}|\d+(:\d+){0,2}")  # the forms in sbatch's manual
# Runs in the allocation, on this machine: tells the job's number, then holds it.
HOLD = 'echo "$SLURM_JOB_ID"; exec cat >/dev/null'


@dataclass(frozen=True)
class Slurm:
    """Nodes of a Slurm cluster for ``launch``.

    Each ``launch`` asks for a job and gives it back at its end. An account is named as for salloc,
    in SALLOC_ACCOUNT.

    Parameters
    ----------
    nodes : int
    gpus : int
        On each node.
    time : int or str, optional
        How long the nodes may be held: minutes, or text as sbatch takes it ("1:30:00"). Without it
        the cluster's own choice holds.
    partition : str, optional
        Without it the cluster's own choice holds.
    job : int, optional
        Instead of all these: the number of a job that is held already, with its nodes and GPUs.

    Raises
    ------
    ValueError
        For ``nodes`` below 1, ``gpus`` below 0, a ``time`` or ``partition`` that is none, and for a
        ``job`` with any of these.
    """

    nodes: int | None = None
    gpus: int = 0
    time: int | str | None = None
    partition: str | None = None
    job: int | None = None

    def __post_init__(self):
        need = Need(ValueError)
        if self.job is not None:
            need.whole("job", self.job)
            alone = (self.nodes, self.gpus, self.time, self.partition) == (None, 0, None, None)
            need(alone, "job", self.job, "it alone: its nodes, GPUs and time are what it has")
            return
        need.whole("nodes", self.nodes)
        need.whole("gpus", self.gpus, 0)
        text = isinstance(self.time, str) and TIME.fullmatch(self.time)
        right = self.time is None or is_whole(self.time, 1) or text
        need(right, "time", self.time, 'whole minutes, or text such as "1:30:00" or "2-0"')
        name = isinstance(self.partition, str) and re.fullmatch(r"[^\s,-][^\s,]*", self.partition)
        need(self.partition is None or name, "partition", self.partition, "a partition's name")

    @contextlib.contextmanager
    def allocation(self, num_processes) -> "Iterator[Allocation]":
        """The hosts of a job, for as long as the context lasts; of a job of its own, till then.

        If Slurm ended the job, an error says so first.

        Parameters
        ----------
        num_processes : int
            Cores to ask for on each node.

        Yields
        ------
        Allocation

        Raises
        ------
        LaunchError
            For what Slurm refuses.
        """
        with contextlib.nullcontext() if self.job else self._salloc(num_processes) as salloc:
            number = self.job or salloc.wait_for_nodes()
            hosts = Allocation(number, jobs.hosts_of(number))
            try:
                yield hosts
            except LaunchError as error:
                if why := jobs.why_ended(number):
                    raise LaunchError(f"{why}\nWhat was seen of it: {error}") from error
                raise

    def _salloc(self, num_processes):
        options = [
            f"--nodes={self.nodes}",
            "--ntasks-per-node=1",
            f"--cpus-per-task={num_processes}",
            "--job-name=launch",
        ]
        options += [f"--gres=gpu:{self.gpus}"] if self.gpus else []
        options += [f"--time={self.time}"] if self.time else []
        options += [f"--partition={self.partition}"] if self.partition else []
        return Salloc(options)


class Salloc:
    """A job of our own: asked for on entering the context, given back on leaving it."""

    def __init__(self, options):
        self._options = options

    def __enter__(self):
        jobs.check_installed()
        self._words = tempfile.TemporaryFile()
        command = [*jobs.command("salloc"), *self._options, "sh", "-c", HOLD]
        self._process = subprocess.Popen(
            [*WITH_PARENT, str(os.getpid()), *command],
            env=jobs.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # a notebook's interrupt reaches the kernel alone
        )
        return self

    def wait_for_nodes(self) -> int:
        """The job's number, once it has its nodes; says where it stands while it waits."""
        seconds, place, printed, poll = FIRST_LOOK, None, b"", select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        while not printed.endswith(b"\n"):
            if not poll.poll(1000 * seconds):
                seconds, before = min(2 * seconds, LOOK), place
                if (place := jobs.place_of(self._number())) != before and place:
                    print(place, flush=True)
                continue
            more = os.read(self._process.stdout.fileno(), 4096)
            if not more:
                raise LaunchError(jobs.refusal(self._messages()))
            printed += more
        return int(printed)

    def _messages(self):
        """What salloc has printed on its standard error so far."""
        self._words.seek(0)
        return self._words.read().decode(errors="replace")

    def _number(self):
        """The number of the job that waits, None before salloc has told it."""
        number = re.search(r"job allocation (\d+)", self._messages())
        return number and int(number[1])

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.send_signal(signal.SIGTERM)  # one that waits reads nothing
        try:
            self._process.wait(LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            jobs.cancel(self._number())
        finally:
            self._process.stdout.close()
            self._words.close()


class Allocation:
    """The nodes of a job, used as ``ssh.Ssh`` is."""

    def __init__(self, number, hosts):
        self.hosts = hosts
        self._number = number
        self.environ = jobs.environ()

    def commands(self, framework) -> dict:
        """What starts an agent, by host: a step of the job, beside those that may be there."""
        step = [
            *jobs.command("srun"),
            f"--jobid={self._number}",
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            "--cpu-bind=none",
            "--unbuffered",
        ]
        return {h: [*step, f"--nodelist={h}", "sh", "-c", agent(framework)] for h in self.hosts}
