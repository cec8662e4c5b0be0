"""Starts one worker of the lab and sees to it that nothing of it is left behind.

    python supervisor.py JOB EVENTS FOLDER COMMAND...

JOB and EVENTS are file descriptors: the worker's standard input and the pipe on which it reports.
FOLDER is where the worker may leave temporary files. Standard input comes from the notebook: the
byte ``i`` interrupts the worker; anything else, or its end because the notebook has gone, kills it.
Once the worker has ended, whatever it started is killed, the folder is removed, and ``exit`` with
the worker's exit code is the last event.

Standard library only, and nothing of the package: it must start at once.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform == "linux"


def main(job, events, folder, command):
    libc = ctypes.CDLL(None)
    if LINUX:
        # What the worker started and left behind becomes a child of this process.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def prepare():
        os.setpgid(0, 0)
        os.nice(5)  # the notebook stays responsive
        if LINUX:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # if memory runs out, the run goes, not the notebook

    pipe = f"/proc/{os.getpid()}/fd/{events}" if LINUX else f"/dev/fd/{events}"
    worker = subprocess.Popen(
        command,
        stdin=job,
        pass_fds=[] if LINUX else [events],
        env=os.environ | {"D2LMGPU_EVENTS": pipe, "TMPDIR": folder},
        preexec_fn=prepare,
    )
    os.close(job)
    threading.Thread(target=obey, args=[worker.pid], daemon=True).start()
    _, status = os.waitpid(worker.pid, 0)
    kill_group(worker.pid)
    while pids := descendants(os.getpid()):
        for pid in pids:
            kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    shutil.rmtree(folder, ignore_errors=True)
    report = {"event": "exit", "code": os.waitstatus_to_exitcode(status)}
    with contextlib.suppress(BrokenPipeError):  # the notebook has gone
        os.write(events, json.dumps(report).encode() + b"\n")


def obey(worker):
    """Do what the notebook says, until it says no more."""
    parent = os.getppid()
    while True:
        ready, _, _ = select.select([0], [], [], 1)
        if not ready and os.getppid() == parent:
            continue
        if ready and os.read(0, 1) == b"i":
            kill(worker, signal.SIGINT)
            continue
        return kill_group(worker)


def kill(pid, how):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def kill_group(leader):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def descendants(root):
    """Process ids of all children of ``root``, their children and so on (on Linux)."""
    children = {}
    for entry in os.listdir("/proc") if LINUX else []:
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                parent = file.read().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
    found, queue = [], [root]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
