"""A process that has imported PyTorch, and forks the supervisor of each ``launch`` from itself.

    python -m d2lmgpu.process.forkserver SOCKET IDLE MODULE...

PyTorch takes seconds to import, and a notebook launches often. So the first ``launch`` starts this
process, and later ones find the imports done. It computes nothing and has no other thread, as
``ranks`` wants it of a process that forks; each supervisor is as one that has just been started.
It ends with the caller, or after IDLE seconds without a request.

On SOCKET come the requests of ``forks``.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from d2lmgpu.machine.imports import import_once
from d2lmgpu.process import ranks
from d2lmgpu.process.forks import Forks, answered, still_runs
from d2lmgpu.process.settings import run_module
from d2lmgpu.process.supervisor import ready, wake_at_an_end

IDLE = 600  # seconds: what was imported takes memory
LOOK = 1  # second from one look at the caller to the next
# Of /proc/self/status, what a process takes over from the one that starts it.
INHERITED = {
    "Umask",
    "SigBlk",
    "SigIgn",
    "Uid",
    "Gid",
    "Groups",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed_list",
    "Mems_allowed_list",
}


class ForkServer(Forks):
    """A fork server, which ends once it is asked for nothing more and what it has forked has ended.

    Raises OSError where none can be started.
    """

    def __init__(self, modules, environ, idle=IDLE):
        super().__init__()
        self._made_for = _circumstances(environ)
        with contextlib.ExitStack() as stack, self.theirs as theirs:
            stack.callback(self.close)
            self._process = subprocess.Popen(
                [*run_module(__name__), str(theirs.fileno()), str(idle), *modules],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a notebook's interrupt reaches the kernel alone
            )
            # Somebody has to ask how it has ended, whenever that is.
            threading.Thread(target=self._process.wait, daemon=True, name="fork server").start()
            stack.pop_all()

    @property
    def serves(self) -> bool:
        """Whether it has not ended, as far as one can see."""
        return self._socket.fileno() >= 0 and self._process.poll() is None

    def fits(self, environ) -> bool:
        """Whether what it forks is as a process that is started now."""
        return self._made_for == _circumstances(environ)


def _circumstances(environ):
    """All by which two processes that this one starts, now and later, could differ."""
    status, limits = (
        Path("/proc/self", name).read_text(encoding="utf-8") for name in ("status", "limits")
    )
    inherited = [line for line in status.splitlines() if line.partition(":")[0] in INHERITED]
    return environ, inherited, limits, os.getpriority(os.PRIO_PROCESS, 0)


def main(descriptor, idle, *modules) -> None:
    server, caller = socket.socket(fileno=int(descriptor)), os.getppid()
    import_once(modules)
    os.chdir("/")  # the caller's folder may go, or be unmounted
    woken, used, asked = wake_at_an_end(), time.monotonic(), True
    while os.getppid() == caller:  # else the guards end what is below them, as this process ends
        due = ready(LOOK, woken, *[server.fileno()] * asked)
        if woken in due:
            os.read(woken, 512)
        if server.fileno() in due:
            asked = answered(server, (woken,), ranks.main)
        if still_runs() or (asked and due):
            used = time.monotonic()
        elif not asked or time.monotonic() > used + float(idle):
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
