"""The workers of ``launch``: ``python -u -m d2lmgpu.process.ranks JOB EVENTS FOLDER MODULE...``.

The supervisor imports the modules once, waits for one job, and forks a worker for each rank, so
that no worker waits for imports of its own. It never computes, and it has no other thread, when it
forks. Nothing listens but the workers, on the loopback interface. They leave in the folder

    result-R, error-R       what worker R returned, pickled below its type, or raised, as JSON
    log-R                   the output of worker R: of worker 0 its errors, the rest is shown
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

from d2lmgpu.process.events import VARIABLE
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
    first = job["first_rank"]
    ranks = range(first, first + job["num_processes"])
    workers = [fork_worker(rank, folder, job) for rank in ranks]
    see_to_the_end(workers, guarded, int(events), folder)


def fork_worker(rank, folder, job):
    worker = os.fork()
    if not worker:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            lead_a_group()
            work(rank, folder, job)
        finally:
            os._exit(1)
    return worker


def write_to(file, *streams):
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in streams:
        os.dup2(log, stream)


def work(rank, folder, job):
    """One worker: run the job, leave its result or its error in ``folder``."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    write_to(folder / f"log-{rank}", *((2,) if rank == 0 else (1, 2)))
    os.environ.clear()
    os.environ.update(
        job["environ"],
        RANK=str(rank),
        LOCAL_RANK=str(rank - job["first_rank"]),
        WORLD_SIZE=str(job["world_size"]),
        LOCAL_WORLD_SIZE=str(job["num_processes"]),
    )
    try:
        take_on(job)
        name, content = f"result-{rank}", run(rank, folder, job)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        report = {
            "time_ns": time.time_ns(),
            "error": "".join(traceback.format_exception_only(error)).strip(),
            "frames": [(f.filename, f.lineno, f.name, None) for f in frames[2:] or frames],
        }
        name, content = f"error-{rank}", json.dumps(report).encode()
    unfinished = folder / f"{name}.part"  # the supervisor may end this worker while it writes
    unfinished.write_bytes(content)
    unfinished.rename(folder / name)
    with contextlib.suppress(ValueError):  # the function may have closed it
        sys.stdout.flush()
    os._exit(name.startswith("error"))  # at once: a clean exit can wait for a peer that waits


def run(rank, folder, job):
    """Call the function among its peers; the type of what it returned, and that, pickled."""
    import cloudpickle
    import numpy as np
    import torch
    from torch import distributed as dist

    from d2lmgpu.machine.devices import own_gpus, place

    np.random.seed()  # not the numbers that the other workers draw
    if seed := os.environ.get("D2LMGPU_SEED"):
        torch.manual_seed(int(seed))
    gpus = torch.cuda.device_count()
    nccl = own_gpus(job["num_processes"], gpus)  # it refuses two ranks on one GPU
    kind, number = place(rank - job["first_rank"], gpus)
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
    fn, arguments = pickle.loads(job["call"])
    result = fn(*arguments.values())
    kind = type(result).__name__
    try:
        pickled = cloudpickle.dumps(result)
    except Exception as error:
        raise TypeError(
            f"it returned a {kind}, which cannot be sent back ({error}). "
            "Return plain numbers, arrays or a state_dict instead."
        ) from None
    dist.destroy_process_group()
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
