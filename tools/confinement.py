"""Runs what learners have written, and leaves nothing of it.

As root each of the commands that run at a time has an account of its own, which may write nowhere
but in its folder and the places for everybody, sees no process but its own and has no network but
its own loopback. Anybody else has no other account to give: what runs may do what you may.

As a program, in a new network and a new view of files, it switches loopback on, where a kernel
listens, empties the folder HIDDEN, and becomes the command.

    python confinement.py HIDDEN COMMAND...

Linux only.
"""

import ctypes
import fcntl
import os
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

from d2lmgpu.process import supervisor
from d2lmgpu.process.output import Bounded

# It runs a command, and ends all that this leaves running.
KEEPER = Path(__file__).resolve().parents[1] / "hub" / "keeper.py"
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # linux/sockios.h, linux/if.h
FIRST_ACCOUNT, ACCOUNTS = 61184, 4328  # of systemd's for services, which nobody else has
SLOTS = 8
FOR_EVERYBODY = ("/tmp", "/var/tmp", "/dev/shm")
MEMORY = 5 << 30  # bytes that all processes of a command may take; one answer may take 4 GiB
FILE = 1 << 30  # bytes that a file of theirs may have
PROCESSES = 1000  # with their threads, of an account
PRINTED = 32 << 10  # bytes of the beginning, and of the end, of what they say
ANSWER = 1 << 20  # bytes of a command's standard output
EVERY = 0.25  # seconds
NAMESPACES = [
    "unshare",
    "--net",
    "--ipc",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
]


class NotConfined(RuntimeError):
    """Why root has no other account to give."""


@dataclass
class Ended:
    """How a command has ended: ``cut`` says why it was ended, "" if it came to its own end."""

    code: int
    cut: str
    answer: bytes
    errors: str


class Confinement:
    """Runs commands, some at a time, each in a slot of its own: 0, 1, 2, … below ``SLOTS``."""

    def __init__(self, own_account: bool, hidden: Path):
        """``own_account``: as the account that calls, even if that is root.

        ``hidden`` is a folder in which another account sees nothing.
        """
        self._hidden = hidden.resolve()
        self.apart = os.geteuid() == 0 and not own_account
        self._first = self._accounts() if self.apart else None
        self._running, self._lock = set(), threading.Lock()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):  # of a keeper that was killed
            raise OSError(ctypes.get_errno(), "orphans cannot be adopted")

    def _accounts(self):
        """The first of as many accounts as there are slots, which no other process has taken."""
        for first in range(FIRST_ACCOUNT, FIRST_ACCOUNT + ACCOUNTS, SLOTS):
            self._taken = socket.socket(socket.AF_UNIX)
            with suppress(OSError):
                self._taken.bind(f"\0d2lmgpu-accounts-{first}")  # until this process ends
                return first
        raise NotConfined("As root, notebooks run as accounts of their own: all are taken.")

    def check(self, folder: Path) -> None:
        """Raises NotConfined where a command could not run in ``folder`` as another account."""
        if self.apart:
            self.give(folder, 0)
            ended = self.run([sys.executable, "-c", "import zmq"], folder, 0, 60, os.environ)
            if ended.code:
                last = (ended.errors.strip().splitlines() or ["without a word"])[-1]
                raise NotConfined(
                    f"As root, notebooks run as another account without network, but here this "
                    f"fails ({last}). That account has to be able to read {sys.prefix}, and root "
                    "to make namespaces, which many containers do not let it. With --own-account "
                    "they run as root, and may do whatever root may."
                )

    def give(self, folder: Path, slot: int) -> None:
        """Let commands in ``slot`` write to ``folder`` and all that it holds."""
        if self.apart:
            account = self._first + slot
            for path, folders, files in os.walk(folder):
                for name in (".", *folders, *files):
                    os.chown(Path(path, name), account, account, follow_symlinks=False)

    def run(self, command, folder: Path, slot: int, seconds: float, environ) -> Ended:
        """Run ``command`` in ``folder``; when this returns, no process of it is left."""
        whole = [*self._entry(slot), sys.executable, KEEPER, *command]
        with self._lock:
            process = subprocess.Popen(
                list(map(str, whole)),
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._running.add(process.pid)
        kept = {process.stdout: Bounded(ANSWER, 0), process.stderr: Bounded(PRINTED, PRINTED)}
        try:
            cut = self._watch(process, kept, time.monotonic() + seconds)
        finally:
            process.kill()
            process.wait()
            with self._lock:
                self._running.discard(process.pid)
            self._end_orphans()
            self._remove_files(slot, folder)
        with process.stdout, process.stderr:
            for pipe, output in kept.items():  # all that could write has ended
                while data := os.read(pipe.fileno(), 1 << 16):
                    output.add(data)
        answer, errors = kept.values()
        return Ended(process.returncode, cut, answer.text().encode(), errors.text())

    def _entry(self, slot):
        """What stands in front of a command."""
        limits = ["prlimit", f"--fsize={FILE}", "--core=0"]
        if not self.apart:
            return ["setpriv", "--pdeathsig", "TERM", *limits]
        account = str(self._first + slot)
        return [
            "setpriv",
            "--pdeathsig",
            "KILL",
            *NAMESPACES,
            sys.executable,
            __file__,
            self._hidden,
            *limits,
            f"--nproc={PROCESSES}",
            "setpriv",
            "--reuid",
            account,
            "--regid",
            account,
            "--clear-groups",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--pdeathsig",  # unshare's --kill-child is lost with the change of the account
            "KILL",
        ]

    def _watch(self, process, kept, deadline):
        """Read what is printed until the end, which comes early for a reason: its words."""
        with selectors.DefaultSelector() as selector:
            for pipe in kept:
                selector.register(pipe, selectors.EVENT_READ)
            look = 0
            while process.poll() is None:
                now = time.monotonic()
                if now > deadline:
                    return "time"
                if now > look:
                    look = now + EVERY
                    if memory(process.pid) > MEMORY:
                        return "memory"
                for key, _ in selector.select(EVERY):
                    data = os.read(key.fd, 1 << 16)
                    kept[key.fileobj].add(data)
                    if not data:
                        selector.unregister(key.fileobj)
        return ""

    def _end_orphans(self):
        """End what is below this process and belongs to no command that still runs."""
        while True:
            with self._lock:
                children = psutil.Process().children()
                orphans = [child for child in children if child.pid not in self._running]
            if not orphans:
                return
            for orphan in orphans:
                for process in (*below(orphan), orphan):
                    with suppress(psutil.Error):
                        process.kill()
            for orphan in orphans:
                with suppress(ChildProcessError):
                    os.waitpid(orphan.pid, 0)

    def _remove_files(self, slot, folder):
        """Remove what the account of ``slot`` has left in the places for everybody else."""
        for place in FOR_EVERYBODY if self.apart else ():
            with suppress(OSError), os.scandir(place) as entries:
                for entry in entries:
                    own = entry.stat(follow_symlinks=False).st_uid == self._first + slot
                    if own and Path(entry.path) not in (folder, *folder.parents):
                        remove(entry)


def remove(entry) -> None:
    """Remove a file, or a folder with all that it holds."""
    if entry.is_dir(follow_symlinks=False):
        supervisor.remove(entry.path)
    else:
        with suppress(OSError):
            os.unlink(entry.path)


def below(process) -> list:
    """All processes below one that may have gone."""
    with suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def memory(pid) -> int:
    """Bytes that a process and all below it have of their own."""
    total = 0
    with suppress(psutil.Error):
        for process in (root := psutil.Process(pid), *below(root)):
            with suppress(psutil.Error):
                info = process.memory_info()
                total += info.rss - info.shared
    return total


def main(hidden, *command) -> NoReturn:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=000", "tmpfs", hidden], check=True)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
