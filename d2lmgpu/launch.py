"""Worker processes for DistributedDataParallel, started from a notebook: here, or on other hosts.

A kernel must not be forked: it has threads, and may have talked to a GPU. So it starts a supervisor
that imports PyTorch, and that one forks the workers: see ``process.supervisor`` and
``process.ranks``. On other hosts ssh or Slurm starts it, see ``process.hosts``. No framework is
imported here but for the store in which the workers of several hosts meet.
"""

import codecs
import contextlib
import os
import pickle

from d2lmgpu.machine.checks import is_count, is_list
from d2lmgpu.process import events
from d2lmgpu.process.child import start_ranks
from d2lmgpu.process.failures import LaunchError, results
from d2lmgpu.process.hosts import Hosts
from d2lmgpu.process.sending import pickled
from d2lmgpu.process.settings import settings
from d2lmgpu.process.slurm import Slurm
from d2lmgpu.process.ssh import Ssh

__all__ = ["LaunchError", "Slurm", "launch", "prepare"]
_prepared = None


def launch(fn, *args, num_processes, hosts=None):
    """Run ``fn(*args)`` in ``num_processes`` worker processes; return their results by rank.

    ``fn`` may be defined in a notebook: it travels by value, with the globals it uses. In each
    worker ``torch.distributed`` is initialised: NCCL where each has a GPU of its own, else gloo (on
    the CPU, where each worker computes with one thread, and on a shared GPU). So
    ``dist.get_rank()`` is its number, and ``d2l.try_gpu`` of its rank on its host is its device.
    What rank 0 prints appears line by line; the other ranks' output is shown only with an error.

    ``hosts`` lists names that ssh reaches without a password, or is a ``Slurm`` that says which
    nodes to ask for: then ``num_processes`` run on each, the first ranks on the first host. Each
    host needs the same Python, with the same packages, at the same path, and the folder in which
    this process runs.

    Raises ValueError for ``num_processes`` below 1, on Windows, and for hosts that are none or
    named twice, TypeError for what cannot be sent to another process, and LaunchError if a worker
    raises, is killed or ends without a result, a host does not answer or is lost, or Slurm refuses
    the nodes or takes them away. However it ends, no process, port or file is left behind.
    """
    global _prepared
    if not is_count(num_processes):
        raise ValueError(f"num_processes={num_processes!r}: give a whole number from 1 up.")
    if not callable(fn):
        raise TypeError(f"launch runs a function in its workers, not {fn!r}: give it first.")
    if not (hosts is None or isinstance(hosts, Slurm)):
        _check_hosts(hosts)
    number, call = int(num_processes), pickled(fn, dict(enumerate(args, 1)))
    if hosts is None:
        child, _prepared = _prepared or start_ranks("torch"), None
        return _run(child, call, number, [""] * number)
    slurm = isinstance(hosts, Slurm)
    with hosts.allocation(number) if slurm else contextlib.nullcontext(Ssh(hosts)) as way:
        places = [f", on {host}," for host in way.hosts for _ in range(number)]
        return _run(Hosts(way, number), call, number, places)


def _run(child, call, number, places):
    """What the workers of ``child`` return, ``number`` of them on each host."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    try:
        job = {"call": call, "num_processes": number, "first_rank": 0, "world_size": number,
               "store": None, **settings(os.environ | child.environ)}  # fmt: skip
        child.send(pickle.dumps(job))
        end = child.read(
            on_event=events.pass_on,
            on_output=lambda output: print(decode(output), end="", flush=True),
        )
        return results(child.left, places, end)
    finally:
        child.close()


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


def prepare():
    """Let the processes of the next ``launch`` import PyTorch now; they end with this process."""
    global _prepared
    if _prepared is not None:
        _prepared.close()
    _prepared = start_ranks("torch", "torch._dynamo")  # the first optimiser imports the latter
