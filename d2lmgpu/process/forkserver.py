"""A process that has imported PyTorch, and forks the supervisor of each ``launch`` from itself.

    python -m d2lmgpu.process.forkserver SOCKET IDLE MODULE...

PyTorch takes seconds to import, and a notebook launches often. So the first ``launch`` starts this
process, and later ones find the imports done. It computes nothing and has no other thread, as
``ranks`` wants it of a process that forks; each supervisor is as one that has just been started.
It ends with the caller, or after IDLE seconds without a request.

On SOCKET come requests: the run's folder and its modules as JSON, with the descriptors of standard
input, output and errors, of the job and the events. The answer is the process id of the guard, with
a descriptor of that process (which only Linux has), or why there is none.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from d2lmgpu.process import ranks
from d2lmgpu.process.settings import run_module
from d2lmgpu.process.supervisor import LINUX, ready, wake_at_an_end

IDLE = 600  # seconds: what was imported takes memory
LOOK = 1  # second from one look at the caller to the next
LARGEST = 65536  # bytes of a request or an answer
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


class ForkServer:
    """The caller's end of such a process. Raises OSError where none can be started."""

    def __init__(self, modules, environ, idle=IDLE):
        self._made_for = _circumstances(environ)
        self.has_forked = False
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as stack, theirs:
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
    def serves(self):
        """Whether it has not ended, as far as one can see."""
        return self._socket.fileno() >= 0 and self._process.poll() is None

    def fits(self, environ):
        """Whether what it forks is as a process that is started now."""
        return self._made_for == _circumstances(environ)

    def fork(self, folder, modules, descriptors):
        """The guard of a new supervisor, a :class:`Forked`.

        Raises OSError where there can be none, ConnectionError where the server has ended.
        """
        request = json.dumps({"folder": os.fspath(folder), "modules": modules}).encode()
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)  # an answer that nobody has read would be the next one's
            socket.send_fds(self._socket, [request], descriptors)
            answer, received, *_ = socket.recv_fds(self._socket, LARGEST, 1)
            if not answer:
                raise ConnectionResetError("The fork server has ended.")
            stack.pop_all()
        self.has_forked = True
        pid, number = json.loads(answer)
        if number:
            raise OSError(number, os.strerror(number))
        return Forked(pid, *received)

    def close(self):
        """Let it end, once what it has forked has."""
        self._socket.close()


class Forked:
    """A process that is not this one's child; what of ``subprocess.Popen`` a ``Child`` needs."""

    def __init__(self, pid, descriptor):
        self.pid, self._descriptor = pid, descriptor
        os.set_inheritable(descriptor, False)

    def poll(self):
        """None while it runs."""
        return 0 if self._descriptor is None or ready(0, self._descriptor) else None

    def wait(self):
        """Return once it has ended, and nothing of it is left.

        That is when its parent has asked how: the fork server does so at once. If that was killed,
        it may be an init that never asks.
        """
        if self._descriptor is not None:
            ready(None, self._descriptor)
            with contextlib.suppress(ProcessLookupError):
                for _ in range(1000):
                    signal.pidfd_send_signal(self._descriptor, 0)
                    time.sleep(0.001)
            os.close(self._descriptor)
            self._descriptor = None


def _circumstances(environ):
    """All by which two processes that this one starts, now and later, could differ."""
    status, limits = (
        Path("/proc/self", name).read_text(encoding="utf-8") for name in ("status", "limits")
    )
    inherited = [line for line in status.splitlines() if line.partition(":")[0] in INHERITED]
    return environ, inherited, limits, os.getpriority(os.PRIO_PROCESS, 0)


def main(descriptor, idle, *modules):
    server, caller = socket.socket(fileno=int(descriptor)), os.getppid()
    ranks.import_once(modules)
    os.chdir("/")  # the caller's folder may go, or be unmounted
    woken, used, asked = wake_at_an_end(), time.monotonic(), True
    while os.getppid() == caller:  # else the guards end what is below them, as this process ends
        due = ready(LOOK, woken, *[server.fileno()] * asked)
        if woken in due:
            os.read(woken, 512)
        if server.fileno() in due:
            asked = answered(server, woken)
        if still_runs() or (asked and due):
            used = time.monotonic()
        elif not asked or time.monotonic() > used + float(idle):
            break


def still_runs():
    """Whether something that was forked does; ask how the others have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def answered(server, woken):
    """Fork the guard that is asked for; False once nobody asks any more."""
    request, descriptors, *_ = socket.recv_fds(server, LARGEST, 5)
    if not request:
        return False
    pid, number, own = 0, 0, []
    try:
        pid = os.fork()
        if not pid:
            be_guard(json.loads(request), *descriptors, unneeded=(server.fileno(), woken))
        own = [os.pidfd_open(pid)]
    except OSError as error:
        number = error.errno
        if pid:
            os.kill(pid, signal.SIGKILL)
    socket.send_fds(server, [json.dumps([pid, number]).encode()], own)
    for done in (*descriptors, *own):
        os.close(done)
    return True


def be_guard(request, life, output, errors, job, events, unneeded):
    """What the new process does: all that ``ranks`` does when it is started."""
    try:
        os.setsid()
        unneeded = (*unneeded, signal.set_wakeup_fd(-1))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for stream, descriptor in enumerate((life, output, errors)):
            os.dup2(descriptor, stream)
        for descriptor in (life, output, errors, *unneeded):
            os.close(descriptor)
        ranks.main(job, events, request["folder"], *request["modules"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)  # where it returns; ``ranks`` ends its processes by itself


def can_fork():
    """Whether a ``ForkServer`` can be had here."""
    return LINUX and hasattr(os, "pidfd_open")


if __name__ == "__main__":
    main(*sys.argv[1:])
