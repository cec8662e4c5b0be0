"""Worker processes for DDP or ``dist_sync``, started from a notebook: here, or on other hosts.

A kernel must not be forked: it has threads, and may have talked to a GPU. So it starts a process
that imports the framework, and that one forks: see ``process.forkserver``, ``process.supervisor``
and ``process.ranks``. On other hosts ssh or Slurm starts it, see ``hosts.group``. No framework is
imported here but for the store in which the workers of several hosts meet.
"""

import contextlib
import os
import pickle
import sys

from d2lmgpu.machine import devices
from d2lmgpu.machine.checks import is_count, is_list
from d2lmgpu.process.addresses import LOOPBACK
from d2lmgpu.process.child import check_forks
from d2lmgpu.process.events import pass_on
from d2lmgpu.process.failures import LaunchError, results
from d2lmgpu.process.hangs.watcher import Watcher
from d2lmgpu.process.hosts.group import Hosts
from d2lmgpu.process.hosts.slurm import Slurm
from d2lmgpu.process.hosts.ssh import Ssh
from d2lmgpu.process.messages import LaunchJob
from d2lmgpu.process.output import TAIL, Bounded, Shown
from d2lmgpu.process.sending import pickled
from d2lmgpu.process.settings import settings
from d2lmgpu.process.supervisors import Supervisors, start_ranks
from d2lmgpu.process.torch_group import TorchGroup

__all__ = ["LaunchError", "Slurm", "launch", "prepare"]


def launch(fn, *args, num_processes, hosts=None, num_servers=None) -> list:
    """Run ``fn(*args)`` in worker processes; return their results by rank.

    In each worker ``torch.distributed`` is initialised: NCCL where each has a GPU of its own, else
    gloo (on the CPU, where each worker computes with one thread, and on a shared GPU). So
    ``dist.get_rank()`` is its number, and ``d2l.try_gpu`` of its rank on its host is its device.
    What rank 0 prints appears line by line, on standard output or standard error as there (of a
    flood a part); the end of the other ranks' output is shown only with an error. However it ends,
    no process, port or file is left behind, but for one process that has PyTorch imported for the
    next ``launch``: it ends with this one, or after ten minutes without a call.

    Parameters
    ----------
    fn : callable
        It may be defined in a notebook: it travels by value, with the globals it uses.
    *args : object
        Arguments of ``fn``, the same for each worker.
    num_processes : int
        Workers on each host, from 1 to 128: the world size where there is one host.
    hosts : list of str or Slurm, optional
        Names that ssh reaches without a password, or the nodes to ask Slurm for; the first ranks
        are on the first host. Each host needs the same Python, with the same packages, at the same
        path, and the folder in which this process runs. Without it, this host.
    num_servers : int, optional
        With it the workers are MXNet's: ``mx.kv.create("dist_sync")`` joins them, and ``kv.rank``
        is a worker's number. So many servers, dealt out to the hosts in turn, and a scheduler run
        for as long as the workers do. MXNet takes the hosts in another order, by their addresses.

    Returns
    -------
    list
        What ``fn`` returned, one entry a rank.

    Raises
    ------
    ValueError
        For ``num_processes`` or ``num_servers`` below 1 or above 128, for hosts that are none or
        named twice, on Windows, and where no process can be started.
    TypeError
        For what cannot be sent to another process.
    LaunchError
        If a worker or what serves it raises, is killed or ends without a result, a host does not
        answer or is lost, or Slurm refuses the nodes or takes them away. Also once all workers of
        this host wait for each other without end: then it says in which collective and line each
        of them is.
    """
    check_forks()
    for name, number in {"num_processes": num_processes, "num_servers": num_servers}.items():
        if not is_count(number) and (name, number) != ("num_servers", None):
            raise ValueError(f"{name}={number!r}: give a whole number from 1 up.")
    if not callable(fn):
        raise TypeError(f"launch runs a function in its workers, not {fn!r}: give it first.")
    if not (hosts is None or isinstance(hosts, Slurm)):
        _check_hosts(hosts)
    number, servers = int(num_processes), int(num_servers or 0)
    if max(number, servers) > devices.MOST:
        name = "num_processes" if number > devices.MOST else "num_servers"
        raise devices.DeviceError(f"{name}={max(number, servers)}: give at most {devices.MOST}.")
    call = pickled(fn, dict(enumerate(args, 1)))
    group = _served_group(number, servers) if servers else TorchGroup(number)
    if isinstance(hosts, Slurm):
        with hosts.allocation(number) as allocation:
            return _run(Hosts(allocation, group), call, group)
    if hosts is not None:
        child = Hosts(Ssh(hosts), group)
    elif servers:
        child = start_ranks(group.framework)
    else:
        child = _SUPERVISORS.start()
    return _run(child, call, group)


def _served_group(number, servers):
    from d2lmgpu.process.roles import ServedGroup  # which no other launch needs

    return ServedGroup(number, servers)


def _run(child, call, group):
    """What the workers of ``group`` return, whose processes are those of ``child``."""
    names = group.on_host(0, 1)
    num_hosts = len(child.processes) if isinstance(child, Hosts) else 1
    shown = Shown(lambda text: print(text, end="", flush=True))
    errors = Shown(lambda text: print(text, end="", flush=True, file=sys.stderr))
    errors_end = Bounded(0, TAIL)

    def on_errors(data):
        errors_end.add(data)
        errors(data)

    with child:
        job: LaunchJob = {
            "call": call,
            "group": group,
            "processes": names,
            "world_size": group.num_processes * num_hosts,
            "address": LOOPBACK,
            "store": None,
            **settings(os.environ | child.environ),
        }
        child.send(pickle.dumps(job))
        is_watched = group.is_watched and not isinstance(child, Hosts)
        watcher = Watcher(child.folder, child.kill) if is_watched else contextlib.nullcontext()
        with watcher:
            end = child.read(
                on_event=lambda e: child.finish() if e["event"] == "done" else pass_on(e),
                on_output=shown,
                on_errors=on_errors,
            )
        shown.close()
        errors.close()
        processes = child.processes if isinstance(child, Hosts) else {None: names}
        if is_watched and watcher.hang:
            raise LaunchError(f"The workers wait for each other without end. {watcher.hang}")
        hang = watcher.at_the_end(end["codes"] or ()) if is_watched else None
        return results(child, group.in_words(processes), end, errors_end.text(), hang)


def _check_hosts(hosts):
    right = is_list(hosts) and len(hosts) and all(isinstance(host, str) for host in hosts)
    if not right or any(not host or host[0] == "-" or set(host) & set(" \t\n/") for host in hosts):
        raise ValueError(
            f"hosts={hosts!r}: give a list of one host's name or more, as for ssh, "
            "or a Slurm(nodes=…)."
        )
    if twice := sorted({host for host in hosts if hosts.count(host) > 1}):
        raise ValueError(
            f"hosts: {', '.join(twice)} is named twice. Name each once, and give num_processes=2 "
            "for two workers on each."
        )


# One a process: a lab prepares, and the reader's own call of ``launch`` has it.
_SUPERVISORS = Supervisors()


def prepare() -> None:
    """Import PyTorch for the next ``launch`` now, in a process that ends with this one."""
    _SUPERVISORS.prepare()
