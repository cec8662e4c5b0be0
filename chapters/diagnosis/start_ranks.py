"""Runs scripts as the ranks of a job, as torchrun does, and lets every rank have its say.

torchrun ends the other ranks as soon as one has failed. Here each goes on until it ends by itself
or until a limit, when it is killed. PyTorch is imported once, and the ranks are forked, so that a
job starts in a tenth of a second. Jobs come as lines of JSON on the standard input; each is
answered by a line, with the exit code and the output of every rank. The end of the input ends all.

With ``"watched": true`` the hang detector of ``d2lmgpu check`` and ``launch`` looks at the ranks,
and ends them once they hang; the answer has what it says.
"""

import contextlib
import json
import multiprocessing
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import wait
from pathlib import Path

# Without a network PyTorch warns that 127.0.0.1 has no name, in the middle of a rank's output.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch
import torch._dynamo  # DistributedDataParallel imports it: better here, once
import torch.distributed.algorithms.join
import torch.nn.parallel
from torch import distributed as dist

from d2lmgpu.process.hangs.calls import logged
from d2lmgpu.process.hangs.watcher import Watcher
from d2lmgpu.process.supervisor import lead_a_group

forked = multiprocessing.get_context("fork")


def be_rank(rank, job, port, log, seen):
    """In a process of its own: run the script, told what torchrun tells it."""
    lead_a_group()
    with open(log, "wb", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.stdout.reconfigure(line_buffering=True)  # what a killed rank has printed is not lost
    names = "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"
    values = rank, rank, job["num_ranks"], port
    os.environ.update(zip(names, map(str, values)), MASTER_ADDR="127.0.0.1", **job["environ"])
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # that of keep_store
    dist.set_debug_level_from_env()  # as a process does that imports PyTorch itself
    torch.set_num_threads(1)
    watched = contextlib.nullcontext()
    if job.get("watched"):
        watched = logged(seen, job["script"].__eq__, rank, job["num_ranks"], torch)
    try:
        with watched:
            runpy.run_path(job["script"], run_name="__main__")
    except Exception as error:
        frame = error.__traceback__
        while frame and frame.tb_frame.f_code.co_filename != job["script"]:  # not the script's yet
            frame = frame.tb_next
        traceback.print_exception(error.with_traceback(frame))
        sys.exit(1)


def keep_store(listener):
    """In a process of its own: keep the table by which the ranks find each other."""
    lead_a_group()
    port, fd = listener.getsockname()[1], listener.detach()
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False,
                          master_listen_fd=fd)
    signal.pause()
    del store


def signal_group(process, number):
    """Send a signal to a process and to what it has started."""
    for send in (os.killpg, os.kill):  # it may not lead its group yet
        with contextlib.suppress(ProcessLookupError):
            send(process.pid, number)


def run(job):
    """Start the ranks of a job, wait for all of them, and kill those that the limit finds.

    The answer has the exit code and the output of each of the ``ranks``, and the ``hang``: of a
    watched job the cause and a line for each rank, None without a hang.
    """
    with tempfile.TemporaryDirectory() as seen:
        return _run(job, seen)


def _run(job, seen):
    listener = socket.create_server(("127.0.0.1", 0))
    port, num_ranks = listener.getsockname()[1], job["num_ranks"]
    logs = [Path(job["script"]).with_suffix(f".{rank}.log") for rank in range(num_ranks)]
    ranks = [
        forked.Process(target=be_rank, args=(rank, job, port, log, seen))
        for rank, log in enumerate(logs)
    ]
    processes = [forked.Process(target=keep_store, args=(listener,)), *ranks]

    def kill():
        # All of them stand still before the first one dies: nobody may complain about that.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                signal_group(process, number)

    end = time.monotonic() + job["limit"]
    for process in processes:
        process.start()
    listener.close()
    watcher = Watcher(seen, kill, os.path.dirname(job["script"]))  # a thread: after all forks
    if job.get("watched"):
        watcher.start()
    left = {rank.sentinel for rank in ranks}
    while left and (ended := wait([0, *left], max(0, end - time.monotonic()))) and 0 not in ended:
        left -= set(ended)
    watcher.close()
    codes = [rank.exitcode for rank in ranks]
    kill()
    for process in processes:
        process.join()
    hang = watcher.at_the_end(codes)
    return {
        "ranks": [
            {"code": rank.exitcode, "output": log.read_text(errors="replace")}
            for rank, log in zip(ranks, logs)
        ],
        "hang": hang and {"cause": hang.cause, "ranks": hang.ranks},
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
