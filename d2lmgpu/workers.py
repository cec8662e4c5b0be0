"""The processes behind ``launch``: ``python -m d2lmgpu.workers``.

The supervisor runs torch's elastic launcher, which starts the workers. Nothing listens but the
workers, on the loopback interface; all of them meet through files in one folder:

    task                    the pickled function and its arguments
    result-R, error-R       what worker R returned, pickled, or raised, as JSON
    log, log-R              the output of the supervisor and of worker R
    exit-codes              the workers' exit codes, as JSON, if one failed
    pid-R.P                 empty: worker R is process P
    rendezvous, store       where the launcher and torch.distributed meet
"""

import contextlib
import json
import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path


def _supervise(folder, num_processes):
    """Start the workers with torch's elastic launcher and see them to their end."""
    folder = Path(folder)
    caller_ended = threading.Event()

    def end_workers():
        for file in folder.glob("pid-*"):
            # The launcher made each worker the leader of a group of processes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(file.suffix[1:]), signal.SIGKILL)

    def end_with_caller(pipe):
        _wait_for_end(pipe)
        caller_ended.set()
        end_workers()
        shutil.rmtree(folder, ignore_errors=True)  # here, too: the main thread may be anywhere
        os.kill(os.getpid(), signal.SIGTERM)  # the launcher's handler, once set, reaps them

    try:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        threading.Thread(target=end_with_caller, args=(os.dup(0),), daemon=True).start()
        workers_end, _held_open = os.pipe()
        os.dup2(workers_end, 0)  # what the workers get as standard input
        _elastic_launch(folder, num_processes)
    finally:
        end_workers()  # and what they may have started themselves
        if caller_ended.is_set():
            shutil.rmtree(folder, ignore_errors=True)


def _elastic_launch(folder, num_processes):
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_processes,
        run_id=folder.name,
        rdzv_backend="c10d",
        rdzv_endpoint=str(folder / "rendezvous"),
        rdzv_configs={"store_type": "file"},
        local_addr="localhost",
        max_restarts=0,
        monitor_interval=0.1,
    )
    workers = elastic_launch(config, sys.executable)
    try:
        workers("-u", "-m", "d2lmgpu.workers", "work", str(folder))
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        (folder / "exit-codes").write_text(json.dumps(codes))
        sys.exit(1)


def _work(folder):
    """One worker: run the task, leave its result or its error in ``folder``."""
    folder, rank = Path(folder), int(os.environ["RANK"])
    guard = _start_guard(folder)
    (folder / f"pid-{rank}.{os.getpid()}").touch()
    log = os.open(folder / f"log-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (2,) if rank == 0 else (1, 2):
        os.dup2(log, stream)
    try:
        name, content = f"result-{rank}", _run_task(folder, rank)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        report = {
            "time_ns": time.time_ns(),
            "error": "".join(traceback.format_exception_only(error)).strip(),
            "frames": [(f.filename, f.lineno, f.name, None) for f in frames[2:] or frames],
        }
        name, content = f"error-{rank}", json.dumps(report).encode()
    unfinished = folder / f"{name}.part"  # the launcher may end this worker while it writes
    unfinished.write_bytes(content)
    unfinished.rename(folder / name)
    sys.stdout.flush()
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    os._exit(name.startswith("error"))  # at once: a clean exit can wait for a peer that waits


def _start_guard(folder):
    """Fork a process that ends this worker, and what it started, when the supervisor has ended.

    A process because a thread may never get its turn beside a long call of C code.
    """
    guard = os.fork()
    null = os.open(os.devnull, os.O_RDWR)
    if guard:
        os.dup2(null, 0)
        return guard
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _wait_for_end(0)
    shutil.rmtree(folder, ignore_errors=True)  # in case the caller was killed, too
    os.killpg(0, signal.SIGKILL)


def _wait_for_end(pipe):
    while os.read(pipe, 1):
        pass


def _run_task(folder, rank):
    import cloudpickle
    import torch
    from torch import distributed as dist

    from d2lmgpu.devices import check_count

    world_size = int(os.environ["WORLD_SIZE"])
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
    fn, args = pickle.loads((folder / "task").read_bytes())
    result = cloudpickle.dumps(fn(*args))
    dist.destroy_process_group()
    return result


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "supervise":
        _supervise(arguments[0], int(arguments[1]))
    else:
        _work(*arguments)
