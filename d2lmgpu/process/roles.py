"""MXNet's roles: what a worker of ``dist_sync`` needs around it, and how each of them runs.

Workers push gradients to servers, which add them up, and pull what comes of it. A scheduler tells
all of them where the others are. MXNet numbers its workers itself, once they have met: by address,
the last one first, and on one host by port. Here hosts and ports are dealt out in that order, so
that ``kv.rank`` is the rank that ``launch`` speaks of.
"""

import socket
import sys

from d2lmgpu.machine import seed
from d2lmgpu.process.main_module import received

SCHEDULER, SERVER = "scheduler", "server-"
LOOPBACK, LOOPBACK_INTERFACE = "127.0.0.1", "lo0" if sys.platform == "darwin" else "lo"
_held = []  # sockets


def on_host(index, num_hosts, num_processes, num_servers):
    """Names of the processes on one of the hosts: ranks of its workers, servers, the scheduler.

    The servers are dealt out to the hosts in turn; the scheduler is beside worker 0.
    """
    ranks = range(index * num_processes, (index + 1) * num_processes)
    servers = [f"{SERVER}{i}" for i in range(index, num_servers, num_hosts)]
    return [*map(str, ranks), *servers, *[SCHEDULER] * (index == 0 < num_servers)]


def in_words(processes):
    """What each process is called in a message, by its name; ``processes`` has names by host."""
    names = [name for on_one in processes.values() for name in on_one]
    workers, servers = sum(map(str.isdigit, names)), sum(n.startswith(SERVER) for n in names)
    words = {}
    for host, on_one in processes.items():
        for name in on_one:
            if name.isdigit():
                title = f"Worker {name} of {workers}"
            elif name.startswith(SERVER):
                title = f"Server {name.removeprefix(SERVER)} of {servers}"
            else:
                title = "The scheduler"
            words[name] = f"{title}, on {host}," if host else title
    return words


def held_ports(number, address=LOOPBACK):
    """So many ports of ``address``, in rising order, that nobody else is given.

    On Linux they stay bound, without listening, until this process ends: then a neighbour that asks
    for any free port gets another one, and whoever listens at one of these by its number, with
    SO_REUSEADDR as ps-lite and TCPStore do, still can. On BSD and macOS they are only free now.
    """
    sockets = [socket.socket() for _ in range(number)]
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, 0))
    ports = sorted(sock.getsockname()[1] for sock in sockets)
    if sys.platform == "linux":
        _held.extend(sockets)
    return ports


def environments(job):
    """What MXNet reads in its environment, for each of the job's processes on this host."""
    address, port = job["store"]
    workers = [name for name in job["processes"] if name.isdigit()]
    ports = dict(zip(workers, held_ports(len(workers), job["address"]), strict=True))
    common = {
        "DMLC_NODE_HOST": job["address"],
        "DMLC_PS_ROOT_URI": address,
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(job["world_size"]),
        "DMLC_NUM_SERVER": str(job["num_servers"]),
    }
    roles = {
        name: {"DMLC_ROLE": "worker", "PORT": str(ports[name])}
        if name in ports
        else {"DMLC_ROLE": name.partition("-")[0]}
        for name in job["processes"]
    }
    return {name: common | role for name, role in roles.items()}


def serve(job):
    """Be a server or the scheduler, until the last worker has said good-bye."""
    from mxnet import kvstore
    from mxnet.kvstore.kvstore_server import KVStoreServer

    KVStoreServer(kvstore.create("dist_sync")).run()


def work(job):
    """Call the function of a worker; what it returned."""
    import mxnet as mx

    if seed.is_set():
        mx.random.seed(seed.current_seed())
    fn, arguments = received(job["call"])
    result = fn(*arguments.values())
    mx.nd.waitall()  # what it has pushed must have left this process
    return result
