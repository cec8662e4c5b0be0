"""The workers of ``launch``: ``d2lmgpu.process.ranks JOB EVENTS FOLDER MODULE...``.

The supervisor imports the modules once, waits for one job, and forks a worker for each rank (and
MXNet's servers and scheduler, see ``roles``), so that none waits for imports of its own. It never
computes, and it has no other thread, when it forks. Nothing listens but these processes, here on
the loopback interface. They leave in the folder

    result-R, error-R       what worker R returned, pickled below its type, or raised, as JSON
    log-R                   the output of worker R: of worker 0 its errors, the rest is shown
    error-…, log-…          the same of server-0, server-1, …, scheduler
    log                     that of the supervisor
    store                   where the workers of one host meet
"""

import contextlib
import importlib
import json
import os
import pickle
import select
import signal
import sys
import time
import traceback
from pathlib import Path

from d2lmgpu.process import roles
from d2lmgpu.process.events import VARIABLE
from d2lmgpu.process.main_module import received, returned
from d2lmgpu.process.settings import take_on
from d2lmgpu.process.supervisor import lead_a_group, leave, see_to_the_end, start_guard


def main(job, events, folder, *modules):
    guarded, folder = start_guard(int(events), folder), Path(folder)
    write_to(folder / "log", 2)
    for name in modules:
        importlib.import_module(name)
    if int(job) not in select.select([0, guarded, int(job)], [], [])[0]:
        leave(folder)
    with open(int(job), "rb") as pipe:
        job = pickle.loads(pipe.read())
    if job["store"]:  # the workers have no other way to a lab on the caller's machine
        job["environ"][VARIABLE] = f"/dev/fd/{events}"
    elif job["num_servers"]:
        job["store"] = [job["address"], *roles.free_ports(1)]
    own = roles.environments(job) if job["num_servers"] else {}
    pids = [fork(name, folder, job, own.get(name, {})) for name in job["processes"]]
    workers, servers = pids[: job["num_processes"]], pids[job["num_processes"] :]
    see_to_the_end(workers, guarded, int(events), folder, servers)


def fork(name, folder, job, own):
    """Fork one of the job's processes, which adds ``own`` to its environment."""
    process = os.fork()
    if not process:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            lead_a_group()
            work(name, folder, job, own)
        finally:
            os._exit(1)
    return process


def write_to(file, *streams):
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in streams:
        os.dup2(log, stream)


def work(name, folder, job, own):
    """One process: do its part of the job, leave its result or its error in ``folder``."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    write_to(folder / f"log-{name}", *((2,) if name == "0" else (1, 2)))
    os.environ.clear()
    os.environ.update(
        job["environ"],
        **own,
        RANK=name,
        LOCAL_RANK=str(job["processes"].index(name)),
        WORLD_SIZE=str(job["world_size"]),
        LOCAL_WORLD_SIZE=str(job["num_processes"]),
    )
    try:
        take_on(job)
        if not name.isdigit():
            roles.serve()
            os._exit(0)
        import numpy as np  # as the framework has done

        np.random.seed()  # not the numbers that the other workers draw
        result = roles.work(job) if own else run(int(name), folder, job)
        name, content = f"result-{name}", sendable(result)
    except BaseException as error:
        kept = error  # with all its variables: a store of MXNet's, once freed, waits for its peers
        frames = traceback.extract_tb(error.__traceback__)
        report = {
            "time_ns": time.time_ns(),
            "error": "".join(traceback.format_exception_only(kept)).strip(),
            "frames": [(f.filename, f.lineno, f.name, None) for f in frames[2:] or frames],
        }
        name, content = f"error-{name}", json.dumps(report).encode()
    unfinished = folder / f"{name}.part"  # the supervisor may end this worker while it writes
    unfinished.write_bytes(content)
    unfinished.rename(folder / name)
    with contextlib.suppress(ValueError):  # the function may have closed it
        sys.stdout.flush()
    os._exit(name.startswith("error"))  # at once: a clean exit can wait for a peer that waits


def run(rank, folder, job):
    """Call the function among its peers, where PyTorch brings them together; what it returned."""
    import torch
    from torch import distributed as dist

    from d2lmgpu.machine.devices import own_gpus, place

    if seed := os.environ.get("D2LMGPU_SEED"):
        torch.manual_seed(int(seed))
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
    dist.init_process_group(
        "nccl" if nccl else "gloo",
        store=meeting_place(folder, job),
        rank=rank,
        world_size=job["world_size"],
        # else NCCL guesses it at the first collective
        device_id=torch.device("cuda", number) if nccl else None,
    )
    dist.barrier()  # a worker that is done at once must not leave while another one connects
    fn, arguments = received(job["call"])
    result = fn(*arguments.values())
    # A group of gloo may be freed last by a thread of its own, which aborts the process.
    if nccl and dist.is_initialized():
        dist.destroy_process_group()
    return result


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


def meeting_place(folder, job):
    """The store in which the workers find each other: a file or, of several hosts, the caller's."""
    from torch.distributed import FileStore, TCPStore

    if job["store"]:
        address, port = job["store"]
        return TCPStore(address, port, is_master=False, wait_for_workers=False)
    return FileStore(f"{folder}/store", job["world_size"])


if __name__ == "__main__":
    main(*sys.argv[1:])
