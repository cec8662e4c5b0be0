"""The workers of ``launch``: ``d2lmgpu.process.ranks JOB EVENTS FOLDER MODULE...``.

The supervisor imports the modules once, waits for one job, and forks a worker for each rank (and
what else is in the job's ``WorkerGroup``), so that none waits for imports of its own. It never
computes, and it has no other thread, when it forks. Nothing listens but these processes, here on
the loopback interface. They leave in the folder

    result-R, error-R       what worker R returned, pickled below its type, or raised, as JSON
    hang-PID                what each worker does and waits for, see ``hangs``
    log-R                   the output of worker R; that of worker 0 is shown
    error-…, log-…          the same of others, by their names
    log                     that of the supervisor
    store                   where the workers of one host meet

What went wrong is reported as an event, ``left``, where the folder takes no file any more.
"""

import contextlib
import os
import pickle
import signal
import sys
from json import dumps
from os import _exit, write  # of these, as a function may replace those of their modules
from pathlib import Path
from time import time_ns

from d2lmgpu.machine.imports import import_once
from d2lmgpu.process.errors import error_report
from d2lmgpu.process.events import VARIABLE
from d2lmgpu.process.main_module import received, returned
from d2lmgpu.process.output import cut
from d2lmgpu.process.settings import take_on
from d2lmgpu.process.supervisor import (
    end,
    go_on,
    lead_a_group,
    see_to_the_end,
    start_guard,
    wait_for,
)

ROOM = str(Path(__file__).parent) + os.sep


def main(job, events, folder, *modules) -> None:
    guarded, events, folder = start_guard(int(events), folder), int(events), Path(folder)
    shown = os.dup(2)
    write_to(folder / "log", 2)
    import_once(modules)
    wait_for(int(job), guarded, folder)
    with open(int(job), "rb") as pipe:
        job = pickle.loads(pipe.read())
    if job["store"]:  # the workers have no other way to a lab on the caller's machine
        job["environ"][VARIABLE] = f"/dev/fd/{events}"
    job |= {"files": folder, "events": events, "shown": shown}
    group, names, pids = job["group"], job["processes"], []
    own = group.environments(job)

    def give_up(code):
        """End all: a process could not be started, or must not be."""
        codes = [*[None] * len(pids), code]
        end(pids, [*codes, *[None] * (len(names) - len(codes))], guarded, events, folder)

    for check in group.checks():
        if code := end_of(start(names[0], check, job, {})):
            give_up(code)
    for name in names:
        go_on(guarded, folder)
        part = compute if name.isdigit() else group.serve
        if (pid := start(name, part, job, own.get(name, {}))) is None:
            give_up(1)
        pids.append(pid)
    workers, servers = pids[: group.num_processes], pids[group.num_processes :]
    see_to_the_end(workers, guarded, events, folder, servers)


def start(name, part, job, own) -> int | None:
    """Fork one of the job's processes, which does ``part``; its process id, None if there is none.

    ``own`` is added to its environment.
    """
    try:
        process = os.fork()
    except OSError as error:
        words = (
            f"could not be started: {error.strerror}. There is no process or no memory left here "
            "(ulimit -u says how many processes an account may have)"
        )
        leave_error(name, words, job)
        return None
    if not process:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            lead_a_group()
            code = work(name, part, job, own)
        finally:
            _exit(code)  # at once: a clean exit can wait for a peer that waits
    return process


def end_of(process) -> int:
    """Wait for a process that ``start`` has forked; its exit code."""
    return 1 if process is None else os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def write_to(file, *streams) -> None:
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in streams:
        os.dup2(log, stream)


def work(name, part, job, own) -> int:
    """One process: do its part of the job, leave its result or its error; its exit code."""
    try:
        prepare(name, job, own)
        content = part(job)
    except BaseException as error:
        held_error = (
            error  # with all its variables: a store of MXNet's, once freed, waits for its peers
        )
        try:
            raised = error_report(held_error, ROOM)
            code = leave_error(name, f"raised {raised.pop('error')}", job, **raised)
        except BaseException:  # the function has replaced what everything needs: as Python itself
            sys.__excepthook__(type(held_error), held_error, held_error.__traceback__)
            code = 1
    else:
        code = 0 if content is None else leave_result(name, content, job)
    with contextlib.suppress(Exception):  # the function may have closed it
        sys.stdout.flush()
    return code


def prepare(name, job, own) -> None:
    """Let this process be the one called ``name``: its output, its environment."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if name == "0":
        os.dup2(job["shown"], 2)
    else:
        write_to(job["files"] / f"log-{name}", 1, 2)
    os.environ.clear()
    os.environ.update(
        job["environ"],
        **own,
        RANK=name,
        LOCAL_RANK=str(job["processes"].index(name)),
        WORLD_SIZE=str(job["world_size"]),
        LOCAL_WORLD_SIZE=str(job["group"].num_processes),
    )
    take_on(job)
    if name.isdigit():
        import numpy as np  # as the framework has done

        np.random.seed()  # not the numbers that the other workers draw


def leave_result(name, content, job) -> int:
    """Leave what a worker returned, or why that cannot be; its exit code."""
    try:
        leave_behind(f"result-{name}", content, job)
    except Exception as error:
        what = f"could not leave its result ({len(content):,} bytes) in {job['files']}"
        return leave_error(name, f"{what}: {reason(error)} (TMPDIR chooses the folder)", job)
    return 0


def leave_error(name, what, job, traceback="", waited=None) -> int:
    """Leave ``what`` happened in a process, with more of its ``error_report``; its exit code."""
    report = {"time_ns": time_ns(), "what": what, "traceback": traceback, "waited": waited}
    try:
        leave_behind(f"error-{name}", dumps(report).encode(), job)
    except Exception as error:
        missing = f" (its traceback could not be left in {job['files']}: {reason(error)})"
        report |= {"what": cut(what, 200, 200) + missing * bool(traceback), "traceback": ""}
        line = dumps({"event": "left", "name": f"error-{name}", **report})
        with contextlib.suppress(OSError):  # the function may have closed it
            write(job["events"], line.encode() + b"\n")  # less than 4 KiB: not mixed with others
    return 1


def leave_behind(name, content, job) -> None:
    """Write ``content`` to the file ``name`` where the ``files`` of the job are."""
    unfinished = job["files"] / f"{name}.part"  # the supervisor may end this worker meanwhile
    try:
        unfinished.write_bytes(content)
        unfinished.rename(job["files"] / name)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()  # it takes the room that the reason needs
        raise


def reason(error) -> str:
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"


def compute(job) -> bytes:
    """Call the function among its peers; the type of what it returned, and that, pickled."""

    def call():
        fn, arguments = received(job["call"])
        return fn(*arguments.values())

    return sendable(job["group"].work(job, call))


def sendable(result) -> bytes:
    """The type of what a worker returned, and that, pickled."""
    kind = type(result).__name__
    try:
        pickled = returned(result)
    except Exception as error:
        raise TypeError(
            f"it returned a {kind}, which cannot be sent back ({error}). "
            "Return plain numbers, arrays or a state_dict instead."
        ) from None
    return kind.encode() + b"\n" + pickled


if __name__ == "__main__":
    main(*sys.argv[1:])
