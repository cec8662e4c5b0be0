"""Runs a command that is asked to end (SIGTERM) when the thread that has started it does.

    python with_parent.py PID COMMAND...

PID is the process that has started this one. Linux; standard library only: it must start at once.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h; it stays over exec

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == int(sys.argv[1]):  # else it has ended already
        os.execvp(sys.argv[2], sys.argv[2:])
