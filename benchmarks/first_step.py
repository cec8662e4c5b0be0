"""From a notebook's cell to the first step on two hosts: ``python -m benchmarks.first_step``.

As root, at rest: what else runs is in these seconds. A real kernel launches five times by ssh, then
in a job of Slurm that is held; the box with its Slurm is made anew three times.
"""

import os
import sys
import tempfile
import time
from statistics import median

from jupyter_client.manager import start_new_kernel

from d2lmgpu.process.cluster import box, state
from d2lmgpu.process.hosts import jobs

REPEATS, LIMIT, IDLE_LIMIT = 5, 6, 10  # times, seconds
FIRST = """
from d2lmgpu.launch import Slurm, launch

def train():
    import torch
    from torch import distributed as dist, nn

    net = nn.parallel.DistributedDataParallel(nn.Linear(10, 2))
    trainer = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.rand(8, 10)).sum().backward()
    trainer.step()
    print("first step", flush=True)
"""


def seconds_to_step(client, code) -> float | None:
    """Seconds from asking the kernel to run ``code`` until a worker's first step is shown."""
    begin, seconds = time.perf_counter(), None
    asked = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "error":
            raise RuntimeError(content["evalue"])
        if "first step" in content.get("text", ""):
            seconds = time.perf_counter() - begin
        if content.get("execution_state") == "idle":
            return seconds


def report(what, seconds, limit) -> bool:
    """Print the median; whether it is within the limit."""
    numbers = " ".join(f"{second:.2f}" for second in seconds)
    good = median(seconds) <= limit
    print(f"{what}: {median(seconds):.2f} s ({numbers})", "ok" if good else f"TOO MUCH: {limit} s")
    return good


def main() -> int:
    """Measure and print; returns how many are too slow."""
    if lacking := box.missing(True):
        print("benchmarks.first_step: left out, for it needs", "; ".join(lacking))
        return 0
    good, ups = [], []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[state.VARIABLE] = f"{folder}/cluster"
        try:
            for _ in range(3):
                box.down()
                begin = time.perf_counter()
                box.up(2, "1gbit", True)
                ups.append(time.perf_counter() - begin)
            good.append(report("Slurm in the box, from nothing to idle", ups, IDLE_LIMIT))
            jobs.ask("salloc", "--no-shell", "--nodes=2", "--time=30")
            (job,) = jobs.ask("squeue", "--noheader", "--format=%A")
            manager, client = start_new_kernel(kernel_name="python3")
            try:
                seconds_to_step(client, FIRST)
                for what, hosts in {"ssh": '["n1", "n2"]', "held": f"Slurm(job={job})"}.items():
                    code = f"launch(train, hosts={hosts}, num_processes=1)"
                    seconds = [seconds_to_step(client, code) for _ in range(REPEATS)]
                    good.append(report(f"{what}, to the first step on 2 hosts", seconds, LIMIT))
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)
        finally:
            box.down()
    return good.count(False)


if __name__ == "__main__":
    sys.exit(main())
