"""Runs a learner's server, and ends all that it left running when it is gone.

    python keeper.py COMMAND...

Standard input is a pipe to the hub, for the server's last words: when it ends, what it said last on
standard error, which the hub's log has in whole.

A daemon that the learner started may have a session of its own and nothing in its environment. It
cannot choose its parents: what the server leaves behind becomes a child of this process.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
WORDS = 2000  # bytes
PATIENCE = 3  # seconds from SIGTERM to SIGKILL; the hub's own term_timeout is longer


def main(command: list[str]) -> int:
    """Run ``command``, hand signals on to it, end what it leaves; returns its exit status.

    Raises OSError if this system cannot make orphans the children of this process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "orphans cannot be adopted (PR_SET_CHILD_SUBREAPER)")
    last_words = bytearray()
    errors, theirs = os.pipe()
    # Its number alone is used: the object's methods would take its end away from os.wait.
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=theirs).pid
    os.close(theirs)
    listener = threading.Thread(target=pass_on, args=(errors, last_words), daemon=True)
    listener.start()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: ask(server, number))
    signal.signal(signal.SIGALRM, lambda number, frame: ask(server, signal.SIGKILL))
    pid = None
    while pid != server:  # orphans may end before it
        pid, status = os.wait()
    end_the_rest()
    listener.join(1)  # not for good: somebody may have been handed the other end
    with suppress(OSError):  # after a start the hub no longer listens
        os.write(sys.stdin.fileno(), last_words)
    return os.waitstatus_to_exitcode(status)


def pass_on(errors: int, last_words: bytearray) -> None:
    """Hand on what comes out of ``errors`` to standard error; its end to ``last_words``."""
    while data := os.read(errors, 65536):
        with suppress(OSError):  # nobody reads the hub's log any more: the server runs on
            os.write(sys.stderr.fileno(), data)
        last_words += data
        del last_words[:-WORDS]


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
    code = main(sys.argv[1:])
    if code < 0:  # a signal ended it: so that the hub sees which
        with suppress(OSError):  # of SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
