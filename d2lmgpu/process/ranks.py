"""The workers of ``launch``: ``d2lmgpu.process.ranks JOB EVENTS FOLDER MODULE...``.

The supervisor imports the modules once, waits for one job, and forks a worker for each rank (and
MXNet's servers and scheduler, see ``roles``), so that none waits for imports of its own. It never
computes, and it has no other thread, when it forks. Nothing listens but these processes, here on
the loopback interface. They leave in the folder

    result-R, error-R       what worker R returned, pickled below its type, or raised, as JSON
    hang-PID                what each worker does and waits for, see ``hangs``
    log-R                   the output of worker R; that of worker 0 is shown
    error-…, log-…          the same of server-0, server-1, …, scheduler
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

from d2lmgpu.machine import seed
from d2lmgpu.machine.devices import own_gpus, place
from d2lmgpu.machine.imports import import_once
from d2lmgpu.process import roles
from d2lmgpu.process.errors import error_report, is_own
from d2lmgpu.process.events import VARIABLE
from d2lmgpu.process.hangs.calls import logged
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


def main(job, events, folder, *modules):
    guarded, events, folder = start_guard(int(events), folder), int(events), Path(folder)
    shown = os.dup(2)
    write_to(folder / "log", 2)
    import_once(modules)
    wait_for(int(job), guarded, folder)
    with open(int(job), "rb") as pipe:
        job = pickle.loads(pipe.read())
    if job["store"]:  # the workers have no other way to a lab on the caller's machine
        job["environ"][VARIABLE] = f"/dev/fd/{events}"
    elif job["num_servers"]:
        job["store"] = [job["address"], *roles.held_ports(1)]
    job |= {"files": folder, "events": events, "shown": shown}
    own = roles.environments(job) if job["num_servers"] else {}
    names, pids = job["processes"], []

    def give_up(code):
        """End all: a process could not be started, or must not be."""
        codes = [*[None] * len(pids), code]
        end(pids, [*codes, *[None] * (len(names) - len(codes))], guarded, events, folder)

    if not own and (code := end_of(start(names[0], count_devices, job, {}))):
        give_up(code)
    for name in names:
        go_on(guarded, folder)
        part = run if not own else run_mxnet if name.isdigit() else roles.serve
        if (pid := start(name, part, job, own.get(name, {}))) is None:
            give_up(1)
        pids.append(pid)
    workers, servers = pids[: job["num_processes"]], pids[job["num_processes"] :]
    see_to_the_end(workers, guarded, events, folder, servers)


def start(name, part, job, own):
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


def end_of(process):
    """Wait for a process that ``start`` has forked; its exit code."""
    return 1 if process is None else os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def write_to(file, *streams):
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in streams:
        os.dup2(log, stream)


def work(name, part, job, own):
    """One process: do its part of the job, leave its result or its error; its exit code."""
    try:
        prepare(name, job, own)
        content = part(job)
    except BaseException as error:
        held_error = (
            error  # with all its variables: a store of MXNet's, once freed, waits for its peers
        )
        try:
            raised = error_report(held_error, __file__)
            code = leave_error(name, f"raised {raised.pop('error')}", job, **raised)
        except BaseException:  # the function has replaced what everything needs: as Python itself
            sys.__excepthook__(type(held_error), held_error, held_error.__traceback__)
            code = 1
    else:
        code = 0 if content is None else leave_result(name, content, job)
    with contextlib.suppress(Exception):  # the function may have closed it
        sys.stdout.flush()
    return code


def prepare(name, job, own):
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
        LOCAL_WORLD_SIZE=str(job["num_processes"]),
    )
    take_on(job)
    if name.isdigit():
        import numpy as np  # as the framework has done

        np.random.seed()  # not the numbers that the other workers draw


def leave_result(name, content, job):
    """Leave what a worker returned, or why that cannot be; its exit code."""
    try:
        leave_behind(f"result-{name}", content, job)
    except Exception as error:
        what = f"could not leave its result ({len(content):,} bytes) in {job['files']}"
        return leave_error(name, f"{what}: {reason(error)} (TMPDIR chooses the folder)", job)
    return 0


def leave_error(name, what, job, traceback="", waited=None):
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


def leave_behind(name, content, job):
    """Write ``content`` to the file ``name`` where the ``files`` of the job are."""
    unfinished = job["files"] / f"{name}.part"  # the supervisor may end this worker meanwhile
    try:
        unfinished.write_bytes(content)
        unfinished.rename(job["files"] / name)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()  # it takes the room that the reason needs
        raise


def reason(error):
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"


def count_devices(job):
    """Refuse more workers than devices, before there are any.

    In a process of its own: a process that has counted GPUs may not be able to fork any more.
    """
    import torch

    own_gpus(job["num_processes"], torch.cuda.device_count())


def run(job):
    """Call the function among its peers, where PyTorch brings them together; what it returned."""
    import torch
    from torch import distributed as dist

    rank = int(os.environ["RANK"])
    if seed.is_set():
        torch.manual_seed(seed.current_seed())
    gpus = torch.cuda.device_count()
    nccl = own_gpus(job["num_processes"], gpus)  # it refuses two ranks on one GPU
    kind, number = place(int(os.environ["LOCAL_RANK"]), gpus)
    if kind == "gpu":
        torch.cuda.set_device(number)
    else:
        torch.set_num_threads(1)
        if rank == 0 and VARIABLE in os.environ:  # it is rank 0 that reports to a lab
            from d2lmgpu.process import ddp

            ddp.listen()
    # A worker that is done at once must not leave while another one connects, in any group.
    os.environ.setdefault("TORCH_DIST_INIT_BARRIER", "1")
    dist.init_process_group(
        "nccl" if nccl else "gloo",
        store=meeting_place(job),
        rank=rank,
        world_size=job["world_size"],
        # else NCCL guesses it at the first collective
        device_id=torch.device("cuda", number) if nccl else None,
    )
    log = contextlib.nullcontext()
    if not nccl and not job["store"]:  # the caller sees in its folder what this rank waits for
        log = logged(job["files"], is_own, rank, job["world_size"], torch)
    with log:
        fn, arguments = received(job["call"])
        result = fn(*arguments.values())
    # A group of gloo may be freed last by a thread of its own, which aborts the process.
    if nccl and dist.is_initialized():
        dist.destroy_process_group()
    return sendable(result)


def run_mxnet(job):
    """Call the function among its peers, where MXNet brings them together; what it returned."""
    return sendable(roles.work(job))


def sendable(result):
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


def meeting_place(job):
    """The store in which the workers find each other: a file or, of several hosts, the caller's."""
    from torch.distributed import FileStore, TCPStore

    if job["store"]:
        address, port = job["store"]
        return TCPStore(address, port, is_master=False, wait_for_workers=False)
    # As bytes: under LC_ALL=C its name may be no text of UTF-8.
    return FileStore(os.fsencode(job["files"] / "store"), job["world_size"])


if __name__ == "__main__":
    main(*sys.argv[1:])
