"""A process that has done its imports forks the supervisors of later runs from itself.

A request is the run's folder and its modules as JSON, with the descriptors of standard input,
output and errors, of the job and the events. The answer is the process id of the guard, with a
descriptor of that process (which only Linux has), or why there is none.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
from typing import NoReturn

from d2lmgpu.process.supervisor import LINUX, ready

LARGEST = 65536  # bytes of a request or an answer


def can_fork() -> bool:
    """Whether a ``ForkServer`` can be had here."""
    return LINUX and hasattr(os, "pidfd_open")


class Forks:
    """The caller's end of a process that forks supervisors; ``theirs`` is the other end."""

    def __init__(self):
        self.has_forked = False
        self._socket, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fork(self, folder, modules, descriptors) -> "Forked":
        """The guard of a new supervisor, a :class:`Forked`.

        Raises OSError where there can be none, ConnectionError where that process has ended.
        """
        request = json.dumps({"folder": os.fspath(folder), "modules": modules}).encode()
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)  # an answer that nobody has read would be the next one's
            socket.send_fds(self._socket, [request], descriptors)
            answer, received, *_ = socket.recv_fds(self._socket, LARGEST, 1)
            if not answer:
                raise ConnectionResetError("The process that forks supervisors has ended.")
            stack.pop_all()
        self.has_forked = True
        pid, number = json.loads(answer)
        if number:
            raise OSError(number, os.strerror(number))
        return Forked(pid, *received)

    def close(self) -> None:
        """Ask for nothing more."""
        self._socket.close()


class Forked:
    """A process that is not this one's child; what of ``subprocess.Popen`` a ``Child`` needs."""

    def __init__(self, pid, descriptor):
        self.pid, self._descriptor = pid, descriptor
        os.set_inheritable(descriptor, False)

    def poll(self) -> int | None:
        """None while it runs."""
        return 0 if self._descriptor is None or ready(0, self._descriptor) else None

    def wait(self) -> None:
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


def answered(server, unneeded, supervise) -> bool:
    """Fork the guard that is asked for; False once nobody asks any more.

    It closes what is ``unneeded`` there, and calls ``supervise(job, events, folder, *modules)``.
    """
    request, descriptors, *_ = socket.recv_fds(server, LARGEST, 5)
    if not request:
        return False
    pid, number, own = 0, 0, []
    try:
        pid = os.fork()
        if not pid:
            unneeded = (server.fileno(), *unneeded)
            be_guard(json.loads(request), *descriptors, unneeded, supervise)
        own = [os.pidfd_open(pid)]
    except OSError as error:
        number = error.errno
        if pid:
            os.kill(pid, signal.SIGKILL)
    socket.send_fds(server, [json.dumps([pid, number]).encode()], own)
    for done in (*descriptors, *own):
        os.close(done)
    return True


def be_guard(request, life, output, errors, job, events, unneeded, supervise) -> NoReturn:
    """What the new process does: all that a supervisor's program does when it is started."""
    try:
        os.setsid()
        unneeded = (*unneeded, signal.set_wakeup_fd(-1))
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for stream, descriptor in enumerate((life, output, errors)):
            os.dup2(descriptor, stream)
        for descriptor in (life, output, errors, *unneeded):
            os.close(descriptor)
        supervise(job, events, request["folder"], *request["modules"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)  # where it returns; a supervisor ends its processes by itself


def still_runs() -> bool:
    """Whether something that was forked does; ask how the others have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False
