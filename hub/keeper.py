"""Runs a learner's server, and ends all that it left running when it is gone.

    python keeper.py COMMAND...

A daemon that the learner started may have a session of its own and nothing in its environment. It
cannot choose its parents: what the server leaves behind becomes a child of this process.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PATIENCE = 3  # seconds from SIGTERM to SIGKILL; the hub's own term_timeout is longer


def main(command: list[str]) -> int:
    """Run ``command``, hand signals on to it, end what it leaves; returns its exit status.

    Raises OSError if this system cannot make orphans the children of this process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "orphans cannot be adopted (PR_SET_CHILD_SUBREAPER)")
    # Its number alone is used: the object's methods would take its end away from os.wait.
    server = subprocess.Popen(command).pid
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: ask(server, number))
    signal.signal(signal.SIGALRM, lambda number, frame: ask(server, signal.SIGKILL))
    pid = None
    while pid != server:  # orphans may end before it
        pid, status = os.wait()
    end_the_rest()
    return os.waitstatus_to_exitcode(status)


def ask(server: int, number: int) -> None:
    """Hand a signal on to the server; SIGTERM becomes SIGKILL if it is not heeded."""
    with suppress(ProcessLookupError):
        os.kill(server, number)
    if number == signal.SIGTERM:
        signal.alarm(PATIENCE)


def end_the_rest() -> None:
    """Kill every process below this one until there is none."""
    while True:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
