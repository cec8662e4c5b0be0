"""Watches workers, ends them and whatever they have started, and leaves nothing behind.

    the caller → a guard → the supervisor → its workers → what they start

The guard is the process that the caller, or its fork server, starts; it forks the supervisor. Of
the caller, the guard and the supervisor any may be killed, and the caller along with one of the
others: whichever is left kills all that is below it and removes the folder. On Linux nothing
escapes by a session of its own or a second fork: it becomes a child of the supervisor or, once that
has gone, of the guard.

As a program it runs one command, the worker of a lab:

    python supervisor.py JOB EVENTS FOLDER COMMAND...

JOB and EVENTS are file descriptors: what the worker reads as its standard input, and the pipe on
which it reports. Standard input comes from the caller: a byte "i" interrupts the workers, its end
kills them. Once nothing runs any more, ``exit`` is the last event. The folder goes when the caller
has closed that pipe: until then it may read what is there.

Standard library only, and nothing of the package: it must start at once.
"""

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform == "linux"
GRACE = 0.5  # seconds that the workers have to end by themselves, once one of them has failed
SECONDS_TO_LEAVE = 10  # of a supervisor that may be in the middle of an import
LOG = re.compile("log(-([0-9]+|server-[0-9]+|scheduler))?")  # what `ranks` has workers print to
LOOK = 0.2  # seconds from one look at the logs to the next
LOGGED, KEPT = 64 << 20, 1 << 20  # bytes of a log from which its beginning goes, and what stays
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2  # linux/falloc.h
SECONDS_TO_CLEAN = 5  # of a resource tracker: shared memory that nobody unlinks stays for ever
_libc = ctypes.CDLL(None) if LINUX else None


def start_guard(events, folder, unneeded=()) -> int | None:
    """Fork: return in the child, which is the supervisor, and guard it in this process.

    Returns a file descriptor that is readable once the guard has gone. File descriptors that are
    ``unneeded`` are the supervisor's alone.
    """
    caller = os.getppid()
    guarded, held_open = os.pipe()
    supervisor = os.fork()
    _adopt_orphans()
    if not supervisor:
        os.close(held_open)
        signal.signal(signal.SIGTERM, lambda *_: leave(folder))
        return guarded
    for descriptor in unneeded:
        os.close(descriptor)
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the caller waits for the end of what is printed
        os.dup2(null, stream)
    woken = wake_at_an_end()
    _, status = _wait(lambda: os.waitpid(supervisor, os.WNOHANG), woken, caller) or (0, None)
    if status is None:  # the caller has gone, or wants an end
        # Not SIGKILL: if this process is killed now, the supervisor still leaves nothing.
        _kill(supervisor, signal.SIGTERM)
        ready(SECONDS_TO_LEAVE, woken)
        _kill(supervisor, signal.SIGKILL)
        _, status = os.waitpid(supervisor, 0)
    end_all()
    if status:
        _report(events, codes=None, supervisor=os.waitstatus_to_exitcode(status))
        _wait(lambda: (0, 0), woken, caller)
    leave(folder)


def _wait(ended, woken, caller):
    """Wait until ``ended()`` gives a process id, and return that; None once the caller has gone."""
    poll = select.poll()
    poll.register(0, 0)  # its other end was closed
    poll.register(woken, select.POLLIN)
    while not (end := ended())[0]:
        due = dict(poll.poll(1000))
        if 0 in due or os.getppid() != caller:  # a fork of the caller may still hold the pipe
            return None
        if woken in due:
            os.read(woken, 512)
    return end


def ready(seconds, *descriptors) -> list[int]:
    """Those from which something, or their end, can be read within ``seconds`` (None: wait).

    By poll: select knows no descriptor above 1,023, and a caller may have more files open.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [due for due, _ in poll.poll(None if seconds is None else 1000 * seconds)]


def wait_for(descriptor, guarded, folder) -> None:
    """Wait until something can be read from ``descriptor``; leave when the guard or caller does."""
    if descriptor not in ready(None, 0, guarded, descriptor):
        leave(folder)


def go_on(guarded, folder) -> None:
    """Leave if the guard or the caller has."""
    poll = select.poll()
    for descriptor in (0, guarded):
        poll.register(descriptor, 0)  # its other end was closed
    if poll.poll(0):
        leave(folder)


def wake_at_an_end() -> int:
    """A file descriptor that is readable after a child of this process has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _report(events, event="exit", **fields):
    with contextlib.suppress(BrokenPipeError):
        os.write(events, json.dumps({"event": event, **fields}).encode() + b"\n")


def see_to_the_end(workers, guarded, events, folder, servers=(), afterwards=None) -> None:
    """Wait until all ``workers`` have ended, or ``GRACE`` seconds more once one of them has failed.

    Report their exit codes, None for those that had not ended, and leave when the caller does.
    ``servers`` may serve workers elsewhere, too. So it is reported when the workers here are
    ``done``, and the servers, whose failure counts as well, end when the caller says so: "d".
    ``afterwards()``, if given, is called when the exit codes are reported.
    """
    woken, deadline = wake_at_an_end(), None
    codes, serving = dict.fromkeys([*workers, *servers]), bool(servers)
    while _reap(codes):
        if serving and not any(codes[worker] != 0 for worker in workers):
            serving = False
            _report(events, "done")
        if deadline is None and any(codes.values()):
            deadline = time.monotonic() + GRACE
        due = ready(LOOK, 0, guarded, woken)
        _bound_logs(folder)
        if deadline is not None and time.monotonic() > deadline:
            break
        if not due:
            continue
        if woken in due:
            os.read(woken, 512)
        elif guarded in due or not (byte := os.read(0, 1)):
            leave(folder)
        elif byte == b"d":
            break
        else:
            for worker in [worker for worker, code in codes.items() if code is None]:
                _kill(worker, signal.SIGINT)
    end(codes, codes.values(), guarded, events, folder, afterwards)


def _bound_logs(folder):
    """Give the disk back what a flood has printed, but for its end (on Linux); sizes stay.

    A log takes ``LOGGED`` bytes and what is written from one look to the next. A file system
    without holes keeps all of it until the run's end.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries if LINUX else ():
            taken = entry.stat(follow_symlinks=False)
            if LOG.fullmatch(entry.name) and taken.st_blocks * 512 > LOGGED:
                log = os.open(entry, os.O_WRONLY | os.O_NOFOLLOW)
                how = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
                _libc.fallocate(log, how, ctypes.c_int64(0), ctypes.c_int64(taken.st_size - KEPT))
                os.close(log)


def end(processes, codes, guarded, events, folder, afterwards=None) -> None:
    """End all processes, report the ``codes`` of the workers, and leave when the caller does."""
    for process in processes:  # all of a group at once, that none forks meanwhile
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGSTOP if LINUX else signal.SIGKILL)
    end_all()
    _report(events, codes=list(codes), supervisor=None)
    if afterwards:
        afterwards()
    while guarded not in ready(None, 0, guarded) and os.read(0, 1):
        pass
    leave(folder)


def _reap(codes):
    """Note the exit codes of all children that have ended; whether one of ``codes`` is missing."""
    with contextlib.suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG))[0]:
            if end[0] in codes:
                codes[end[0]] = os.waitstatus_to_exitcode(end[1])
    return None in codes.values()


def leave(folder) -> NoReturn:
    """End this process, guard or supervisor, and all that is left below it."""
    end_all()
    remove(folder)
    os._exit(0)


def remove(folder) -> None:
    """Remove a folder and all in it, as far as it can be: also what its owner had closed to itself.

    What lies deep is moved up first: so nothing is too deep for Python's calls, for the length of
    a path or for the number of open files. Links are not followed.
    """
    with contextlib.suppress(OSError):
        top = _opened(folder)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top):
    """Remove all that is in the folder with the file descriptor ``top``."""
    mark, moved, left = os.urandom(8).hex(), 0, _without_files(top)
    while left:
        with contextlib.suppress(OSError):
            place = _opened(name := left.pop(), top)
            try:
                for inner in _without_files(place):
                    with contextlib.suppress(OSError):
                        os.close(_opened(inner, place))  # a closed one cannot be moved
                        os.rename(inner, f"{mark}-{moved}", src_dir_fd=place, dst_dir_fd=top)
                        left.append(f"{mark}-{moved}")
                        moved += 1
            finally:
                os.close(place)
            os.rmdir(name, dir_fd=top)


def _without_files(place):
    """Remove the files of a folder that is open; the names of the folders in it."""
    folders = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.name, dir_fd=place)
    return folders


def _opened(name, parent=None):
    """A file descriptor of a folder in ``parent``, in which its owner can do all from now on."""
    how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        folder = os.open(name, how, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        folder = os.open(name, how, dir_fd=parent)
    with contextlib.suppress(PermissionError):  # another's
        os.fchmod(folder, 0o700)
    return folder


def _adopt_orphans():
    """What processes below this one leave behind becomes a child of this one."""
    if LINUX:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def lead_a_group() -> None:
    """Make this new process the leader of a group of its own, which ends if its parent does."""
    os.setpgid(0, 0)
    end_with_the_parent()
    if LINUX:
        # If memory runs out, the run goes, not the notebook; some containers forbid to say so.
        setting = "/proc/self/oom_score_adj"
        with contextlib.suppress(OSError), open(setting, "w", encoding="utf-8") as file:
            file.write("500")


def end_with_the_parent() -> None:
    """From now on the system kills this process once its parent has ended (on Linux)."""
    if LINUX:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_all() -> None:
    """Kill all processes below this one and wait for their end (on Linux).

    A resource tracker of Python's ends by itself once those have gone that it has served: it then
    unlinks their shared memory and semaphores, and is killed only if it takes too long.
    """
    deadline = time.monotonic() + SECONDS_TO_CLEAN
    while pids := _descendants(os.getpid()):
        for pid in pids:
            cleans = time.monotonic() < deadline and _tracks_resources(pid)
            _kill(pid, signal.SIGCONT if cleans else signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _tracks_resources(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"resource_tracker import main" in file.read()  # also loky's
    return False


def _kill(pid, number):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(root):
    """Process ids of all children of ``root``, their children and so on."""
    children = {}
    for entry in os.listdir("/proc") if LINUX else []:
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                parent = file.read().rpartition(b")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
    below, queue = [], [root]
    while queue:
        more = children.get(queue.pop(), [])
        below += more
        queue += more
    return below


def main(job, events, folder, *command) -> None:
    guarded = start_guard(int(events), folder)
    pipe = f"/proc/{os.getpid()}/fd/{events}" if LINUX else f"/dev/fd/{events}"
    worker = subprocess.Popen(
        command,
        stdin=int(job),
        pass_fds=[] if LINUX else [int(events)],
        env=os.environ | {"D2LMGPU_EVENTS": pipe},
        preexec_fn=lead_a_group,
    )
    os.close(int(job))
    see_to_the_end([worker.pid], guarded, int(events), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
