"""PyTorch's workers, which meet in a store and need nobody else: the processes of most launches."""

import contextlib
import os
from typing import Any

from d2lmgpu.machine import seed
from d2lmgpu.machine.devices import own_gpus, place
from d2lmgpu.process.errors import is_own
from d2lmgpu.process.events import VARIABLE
from d2lmgpu.process.hangs.calls import logged
from d2lmgpu.process.hosts.store import hold_store
from d2lmgpu.process.worker_group import WorkerGroup


class TorchGroup(WorkerGroup):
    """In each worker ``torch.distributed`` is initialised, over NCCL or gloo."""

    framework, is_watched = "torch", True

    def prepare(self) -> None:
        import torch.distributed  # noqa: F401 (for the store)

    def meet(self, links) -> tuple[list, Any, tuple[str, int]]:
        store, address = hold_store(links[0].host, links[0].hello["caller"])
        return links, store, address

    def checks(self) -> list:
        return [self.count_devices]

    def count_devices(self, job) -> None:
        """Refuse more workers than devices.

        A process that has counted GPUs may not be able to fork any more.
        """
        import torch

        own_gpus(self.num_processes, torch.cuda.device_count())

    def work(self, job, call) -> Any:
        import torch
        from torch import distributed as dist

        rank = int(os.environ["RANK"])
        if seed.is_set():
            torch.manual_seed(seed.current_seed())
        gpus = torch.cuda.device_count()
        nccl = own_gpus(self.num_processes, gpus)  # it refuses two ranks on one GPU
        listening = contextlib.nullcontext()
        kind, number = place(int(os.environ["LOCAL_RANK"]), gpus)
        if kind == "gpu":
            torch.cuda.set_device(number)
        else:
            torch.set_num_threads(1)
            if rank == 0 and VARIABLE in os.environ:  # it is rank 0 that reports to a lab
                from d2lmgpu.process import ddp

                listening = ddp.listening()
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
        with log, listening:
            result = call()
        # A group of gloo may be freed last by a thread of its own, which aborts the process.
        if nccl and dist.is_initialized():
            dist.destroy_process_group()
        return result


def meeting_place(job) -> Any:
    """The store in which the workers find each other: a file or, of several hosts, the caller's."""
    from torch.distributed import FileStore, TCPStore

    if job["store"]:
        address, port = job["store"]
        return TCPStore(address, port, is_master=False, wait_for_workers=False)
    # As bytes: under LC_ALL=C its name may be no text of UTF-8.
    return FileStore(os.fsencode(job["files"] / "store"), job["world_size"])
