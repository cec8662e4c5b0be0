"""Worker processes for DistributedDataParallel, started from a notebook.

A kernel must not be forked: it has threads, and may have talked to a GPU. So it starts a supervisor
that imports PyTorch, and that one forks the workers: see ``process.supervisor`` and
``process.ranks``. This file imports no framework.
"""

import codecs
import json
import os
import pickle
import signal
import sys
import traceback

from d2lmgpu.machine.checks import is_count
from d2lmgpu.process.child import Child, end_in_words
from d2lmgpu.process.sending import pickled
from d2lmgpu.process.settings import settings

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the supervisor's, NCCL's watchdog's
_SUPERVISOR = [sys.executable, "-u", "-m", "d2lmgpu.process.ranks"]
_prepared = None


class LaunchError(RuntimeError):
    """A worker process failed; the message names its rank and shows the end of its traceback."""


def launch(fn, *args, num_processes):
    """Run ``fn(*args)`` in ``num_processes`` worker processes; return their results by rank.

    ``fn`` may be defined in a notebook: it travels by value, with the globals it uses. In each
    worker ``torch.distributed`` is initialised: NCCL where each has a GPU of its own, else gloo (on
    the CPU, where each worker computes with one thread, and on a shared GPU). So
    ``dist.get_rank()`` and ``d2l.try_gpu(rank)`` are its number and its device. What rank 0 prints
    appears line by line; the other ranks' output is shown only with an error.

    Raises ValueError for ``num_processes`` below 1 and on Windows, TypeError for what cannot be
    sent to another process, and LaunchError if a worker raises, is killed or ends without a result.
    However it ends, no process, port or file is left behind.
    """
    global _prepared
    if not is_count(num_processes):
        raise ValueError(f"num_processes={num_processes!r}: give a whole number from 1 up.")
    if not callable(fn):
        raise TypeError(f"launch runs a function in its workers, not {fn!r}: give it first.")
    num_processes, call = int(num_processes), pickled(fn, dict(enumerate(args, 1)))
    child, _prepared = _prepared or _start("torch"), None
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    try:
        environ = os.environ | child.environ
        job = {"call": call, "num_processes": num_processes, **settings(environ)}
        child.send(pickle.dumps(job))
        end = child.read(
            on_event=lambda event: None,
            on_output=lambda output: print(decode(output), end="", flush=True),
        )
        results = [child.folder / f"result-{rank}" for rank in range(num_processes)]
        if end["codes"] == [0] * num_processes and all(result.exists() for result in results):
            return [_unpickle(rank, result.read_bytes()) for rank, result in enumerate(results)]
        raise LaunchError(_what_happened(child.folder, num_processes, end))
    finally:
        child.close()


def _start(*modules):
    # Loopback only: neither the workers nor a store of theirs may be seen from outside.
    environ = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": _LOOPBACK,
               "NCCL_SOCKET_IFNAME": _LOOPBACK,
               "PYTHONPATH": os.pathsep.join(str(path) for path in sys.path if path)}  # fmt: skip
    return Child(_SUPERVISOR, modules, environ)


def _unpickle(rank, result):
    kind, _, pickled = result.partition(b"\n")
    try:
        return pickle.loads(pickled)
    except Exception as error:
        raise LaunchError(
            f"Worker {rank} returned a {kind.decode()}, which cannot be used outside of it "
            f"({error}). Return plain numbers, arrays or a state_dict instead."
        ) from error


def prepare():
    """Let the processes of the next ``launch`` import PyTorch now; they end with this process."""
    global _prepared
    if _prepared is not None:
        _prepared.close()
    _prepared = _start("torch", "torch._dynamo")  # the first optimiser imports the latter


def _what_happened(folder, num_processes, end):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    if end["codes"] is None:
        ended = f"The supervisor of the workers ended with {end['supervisor']}."
        return ended + _tail(folder / "log")
    _, what, rank = min(
        (*_end_of(folder, rank, code), rank)
        for rank, code in enumerate(end["codes"])
        if code != 0 or not (folder / f"result-{rank}").exists()
    )
    return f"Worker {rank} of {num_processes} {what.rstrip()}{_tail(folder / f'log-{rank}')}"


def _end_of(folder, rank, code):
    """When a worker that has failed did so, as far as its end tells, and how, in words."""
    error = folder / f"error-{rank}"
    if error.exists():
        raised = json.loads(error.read_text())
        # Formatted here because only the caller knows the source lines of a notebook's cells.
        frames = traceback.StackSummary.from_list(raised["frames"]).format()[-5:]
        what = f"raised {raised['error']}\n\nThe end of its traceback:\n{''.join(frames)}"
        return (1, raised["time_ns"]), what
    if code is None:
        return (4, rank), "was ended"
    order = 2 if code >= 0 else 3 if code in _ENDED_BY_OTHERS else 0
    return (order, rank), end_in_words(code)


def _tail(log, lines=15):
    text = log.read_text(errors="replace").rstrip() if log.exists() else ""
    end = "\n".join(text.splitlines()[-lines:])
    return f"\n\nThe end of its output:\n{end}" if end else ""
