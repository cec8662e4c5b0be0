"""A training on hosts: the chapter's launcher and script, and what its ranks have written down."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from d2lmgpu.machine.files import CHAPTERS

PAGE = CHAPTERS / "clusters"
LIMIT = 90  # seconds to wait for anything


class TrainingError(RuntimeError):
    """The training did not go on: the message has its last words."""


class Training:
    """The chapter's script on ``hosts``, kept alive by the chapter's launcher.

    Its checkpoints lie in ``folder``/checkpoints, what each rank did in ``folder``/log.
    """

    script, launcher = (PAGE / "train_elastic.py",), PAGE / "elastic.py"

    def __init__(self, hosts, folder, *options):
        self.hosts, self.folder = hosts, Path(folder)
        self.checkpoints, self.log = self.folder / "checkpoints", self.folder / "log"
        command = [
            sys.executable,
            self.launcher,
            " ".join(hosts.names),
            *self.script,
            "--checkpoints",
            self.checkpoints,
            "--timeline",
            self.log,
            *options,
        ]
        self._command = [*map(str, command)]
        self._lines = []
        self._read = {}
        self._lock = threading.Lock()
        self._there = {}
        self.start()

    def start(self) -> None:
        self._words = open(self.folder / "words", "w+", encoding="utf-8")  # noqa: SIM115, as long as it runs
        self.started = time.time()
        self.process = subprocess.Popen(
            self._command,
            cwd=self.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._words,
            stderr=subprocess.STDOUT,
        )

    def words(self) -> str:
        """What the launcher and the ranks have printed."""
        return (self.folder / "words").read_text(encoding="utf-8")

    def kill(self) -> None:
        """End the launcher, which holds the store; and wait until the hosts have nothing of it."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._until_it(lambda: not any(map(self.of_training, self.hosts.names)))

    def lines(self, what=None) -> list:
        """What all ranks have written down so far, in the order of time."""
        lines = [line for line in self.news() if what in (None, line["what"])]
        return sorted(lines, key=lambda line: line["time"])

    def news(self, since=0) -> list:
        """The same in the order in which it came here, from this number on."""
        with self._lock:
            for file in self.log.glob("*.jsonl"):
                with open(file, encoding="utf-8") as text:
                    text.seek(self._read.get(file, 0))
                    new = text.read()
                whole = new[: new.rfind("\n") + 1]
                self._read[file] = self._read.get(file, 0) + len(whole)
                self._lines += map(json.loads, whole.splitlines())
            return self._lines[since:]

    def look(self) -> None:
        """Add to the lines which workers have appeared and gone, and which hosts have."""
        hosts = self.hosts
        there = {
            ("host", host): host
            for host in hosts.names
            if hosts.alive(host) and host not in hosts.cut
        }
        for host in self.hosts.names:
            there |= {(host, pid): host for pid in self.workers(host).values()}
        now = time.time()
        with self._lock:
            for what, new, old in (("appears", there, self._there), ("goes", self._there, there)):
                for who in new.keys() - old.keys():
                    self._lines.append(
                        {
                            "time": now,
                            "what": what,
                            "host": new[who],
                            "pid": None if who[0] == "host" else who[1],
                        }
                    )
        self._there = there

    def until(self, condition) -> object:
        """What ``condition()`` gives, once it is something."""

        def or_ended():
            if self.process.poll() not in (None, 0):
                raise TrainingError(self.standstill())
            return condition()

        return self._until_it(or_ended)

    def _until_it(self, condition):
        deadline = time.monotonic() + LIMIT
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TrainingError(self.standstill())
            time.sleep(0.02)
        return result

    def standstill(self) -> str:
        """What there is to say of a training that does not go on."""
        last = [line for line in self.lines() if line["what"] != "step"][-12:]
        return "\n".join([*map(str, last), self.words()])

    def of_training(self, host) -> dict:
        """{pid: the words of its command} of what belongs to it there: torchrun, its workers."""
        script = str(self.script[0])
        return {pid: words for pid, words in self.hosts.commands(host).items() if script in words}

    def workers(self, host) -> dict:
        """{pid: that on the host} of torchrun's children there, and not theirs: a process that a
        worker starts (``import torch`` runs ldconfig) has its command at first."""
        ours = self.of_training(host)
        torchrun = {pid for pid, words in ours.items() if "torch.distributed.run" in words}
        others = {pid: self.hosts.status(pid) for pid in ours.keys() - torchrun}
        return {
            pid: int(status["NSpid"].split()[-1])
            for pid, status in others.items()
            if status and int(status["PPid"]) in torchrun
        }

    def host_of(self, rank) -> str:
        """The host on which the rank of the newest life is; the last rank if there are fewer."""
        begins = self.lines("begins")
        rank = min(rank, begins[-1]["world_size"] - 1)
        return [line["host"] for line in begins if line["rank"] == rank][-1]
