"""Looks at the processes of this machine, which begin and end meanwhile.

A process that has just been forked still has its parent's command and environment. One that has
ended is there until its parent asks how; by then it can be asked for nothing. And any may go
between two questions. Here a process that cannot be asked is none.
"""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil


def running(fits, *attributes):
    """The processes of which ``fits(process)`` is true; ``info`` of each has these attributes."""
    return [
        process
        for process in psutil.process_iter(attributes)
        if asked(lambda process=process: runs(process) and fits(process))
    ]


def marked(variable, value, *attributes):
    """Those that were started with ``variable=value`` in their environment, wherever in the tree.

    To mark what a test starts is to find it again, whoever its parent is by then.
    """
    return running(lambda process: process.environ().get(variable) == value, *attributes)


def commands(among=None):
    """{process: its command as one text} of all processes, or of those ``among`` them."""
    processes = psutil.process_iter() if among is None else among
    words = {process: asked(process.cmdline) for process in processes}
    return {process: " ".join(command) for process, command in words.items() if command}


def asked(question):
    """The answer to ``question()``; None where the process has gone, or is not ours to ask."""
    try:
        return question()
    except (psutil.Error, ProcessLookupError):
        return None


def runs(process):
    """Whether it has not ended, also where its parent has not asked how."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def left(processes, seconds):
    """Those that still run after at most so many seconds; one that nobody has buried does not."""
    deadline = time.monotonic() + seconds
    while alive := [process for process in processes if asked(partial(runs, process))]:
        if time.monotonic() > deadline:
            return alive
        time.sleep(0.05)
    return []


def kill(processes):
    """Kill those that are still there: each may have ended since it was found, or by the last kill.

    Any that may not be killed is an error: it would be left to the next test.
    """
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def below(guard):
    """The supervisor below a guard, and its workers, the oldest first: see ``supervisor``."""
    (supervisor,) = guard.children()
    # In the order of their birth, which their numbers need not have: these begin anew.
    pids = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
    return supervisor, [psutil.Process(int(pid)) for pid in pids]
