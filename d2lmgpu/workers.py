"""The processes behind ``launch``: ``python -m d2lmgpu.workers FOLDER MODULE...``.

The supervisor imports the modules once, waits for one task, and forks a worker for each device, so
that no worker waits for imports of its own. It never computes, and it has no other thread, when it
forks. Nothing listens but the workers, on the loopback interface; all of them meet through files
in one folder:

    task                    the pickled function and its arguments
    result-R, error-R       what worker R returned, pickled, or raised, as JSON
    log-R                   the output of worker R
    exit-codes              the workers' exit codes, as JSON, if one failed
    store                   where torch.distributed meets
"""

import contextlib
import importlib
import json
import multiprocessing
import os
import pickle
import select
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

GRACE = 0.5  # seconds that the workers have to end by themselves, once one of them has failed


def supervise(folder, num_processes):
    """Fork the workers and see them to their end; 1 if one failed, else 0."""
    pipe = os.pipe()  # the workers' guards notice when this process has ended
    fork = multiprocessing.get_context("fork")
    workers = [
        fork.Process(target=_work, args=(rank, folder, num_processes, pipe))
        for rank in range(num_processes)
    ]
    for worker in workers:
        worker.start()
    codes = [None]
    while None in codes and not any(codes):
        if select.select([0], [], [], 0.05)[0]:  # the caller has gone
            os.close(pipe[1])  # the guards do the rest, even if this process is killed now
            for worker in workers:
                worker.join()
            return 1
        codes = [worker.exitcode for worker in workers]
    if any(codes):
        deadline = time.monotonic() + GRACE
        for worker in workers:
            worker.join(max(0, deadline - time.monotonic()))
        codes = [worker.exitcode for worker in workers]
        told = {r: -signal.SIGTERM if c is None else c for r, c in enumerate(codes) if c != 0}
        (folder / "exit-codes").write_text(json.dumps(told))
    _end(workers)  # and what they may have started themselves
    return int(any(codes))


def _end(workers):
    for worker in workers:
        worker.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)


def _work(rank, folder, world_size, pipe):
    """One worker: run the task, leave its result or its error in ``folder``."""
    os.setsid()
    supervisor_ends, held_open = pipe
    os.close(held_open)
    guard = _start_guard(folder, supervisor_ends)
    log = os.open(folder / f"log-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (2,) if rank == 0 else (1, 2):
        os.dup2(log, stream)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
    try:
        name, content = f"result-{rank}", _run_task(folder, rank, world_size)
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
    sys.stdout.flush()
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    os._exit(name.startswith("error"))  # at once: a clean exit can wait for a peer that waits


def _start_guard(folder, supervisor_ends):
    """Fork a process that ends this worker, and what it started, when the supervisor has ended.

    It also removes the folder, since the caller may have been killed, too. A process because a
    thread may never get its turn beside a long call of C code.
    """
    worker = os.getpid()
    guard = os.fork()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if guard:
        return guard
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.dup2(null, 1)
    os.dup2(null, 2)
    while os.read(supervisor_ends, 1):
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)  # before the folder goes, into which it may write
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _run_task(folder, rank, world_size):
    import cloudpickle
    import numpy as np
    import torch
    from torch import distributed as dist

    from d2lmgpu.devices import check_count

    np.random.seed()  # not the numbers that the other workers draw
    kind = check_count(world_size, torch.cuda.device_count())
    if kind == "gpu":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if kind == "gpu" else "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=world_size,
    )
    dist.barrier()  # a worker that is done at once must not leave while another one connects
    fn, args = pickle.loads((folder / "task").read_bytes())
    result = cloudpickle.dumps(fn(*args))
    dist.destroy_process_group()
    return result


def main(folder, *modules):
    """Import ``modules`` and wait for the task in ``folder``: a line of JSON on standard input."""
    for name in modules:
        importlib.import_module(name)
    line = sys.stdin.readline()
    if not line.endswith("\n"):  # the caller has gone without one
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    task = json.loads(line)
    os.environ.clear()
    os.environ.update(task["environ"])
    sys.path[:] = task["path"]
    return supervise(Path(folder), task["num_processes"])


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))  # the caller need not wait until PyTorch is taken down
