"""MXNet's roles: what a worker of ``dist_sync`` needs around it, and how each of them runs.

Workers push gradients to servers, which add them up, and pull what comes of it. A scheduler tells
all of them where the others are. MXNet numbers its workers itself, once they have met: by address,
the last one first, and on one host by port. Here hosts and ports are dealt out in that order, so
that ``kv.rank`` is the rank that ``launch`` speaks of.
"""

from dataclasses import dataclass
from typing import Any

from d2lmgpu.machine import seed
from d2lmgpu.process.addresses import held_ports
from d2lmgpu.process.worker_group import WorkerGroup

SCHEDULER, SERVER = "scheduler", "server-"


@dataclass(frozen=True)
class ServedGroup(WorkerGroup):
    """MXNet's workers, and what serves them.

    The servers are dealt out to the hosts in turn; the scheduler is beside worker 0.

    Parameters
    ----------
    num_processes : int
        Workers on each host.
    num_servers : int
        On all hosts.
    """

    num_servers: int
    framework, is_watched = "mxnet", False

    def on_host(self, index, num_hosts) -> list[str]:
        servers = [f"{SERVER}{i}" for i in range(index, self.num_servers, num_hosts)]
        return [*super().on_host(index, num_hosts), *servers, *[SCHEDULER] * (index == 0)]

    def title(self, name, num_hosts) -> str:
        if name == SCHEDULER:
            return "The scheduler"
        if name.startswith(SERVER):
            return f"Server {name.removeprefix(SERVER)} of {self.num_servers}"
        return super().title(name, num_hosts)

    def prepare(self) -> None:
        """Nothing: the scheduler, which they find first, is on one of the hosts."""

    def meet(self, links) -> tuple[list, None, tuple[str, int]]:
        links = sorted(links, key=lambda link: link.hello["address"], reverse=True)  # as MXNet does
        return links, None, tuple(links[0].hello[what] for what in ("address", "port"))

    def environments(self, job) -> dict[str, dict[str, str]]:
        address, port = job["store"] or (job["address"], *held_ports(1))
        workers = [name for name in job["processes"] if name.isdigit()]
        ports = dict(zip(workers, held_ports(len(workers), job["address"]), strict=True))
        common = {
            "DMLC_NODE_HOST": job["address"],
            "DMLC_PS_ROOT_URI": address,
            "DMLC_PS_ROOT_PORT": str(port),
            "DMLC_NUM_WORKER": str(job["world_size"]),
            "DMLC_NUM_SERVER": str(self.num_servers),
        }
        roles = {
            name: {"DMLC_ROLE": "worker", "PORT": str(ports[name])}
            if name in ports
            else {"DMLC_ROLE": name.partition("-")[0]}
            for name in job["processes"]
        }
        return {name: common | role for name, role in roles.items()}

    def serve(self, job) -> None:
        """Be a server or the scheduler, until the last worker has said good-bye."""
        from mxnet import kvstore
        from mxnet.kvstore.kvstore_server import KVStoreServer

        KVStoreServer(kvstore.create("dist_sync")).run()

    def work(self, job, call) -> Any:
        import mxnet as mx

        if seed.is_set():
            mx.random.seed(seed.current_seed())
        result = call()
        mx.nd.waitall()  # what it has pushed must have left this process
        return result
