"""Worker processes for DistributedDataParallel, started from a notebook.

``launch(fn, *args, num_processes=k)`` runs ``fn(*args)`` in k processes that can talk through
``torch.distributed``. Three kinds of process take part, each of them started by the one before:

    the caller (a notebook's kernel) → a supervisor with PyTorch imported → the workers, forked

A kernel must not be forked: it has threads, and may have talked to a GPU. Each process holds a pipe
to the one before it and ends when that pipe does: by an interrupt, a crash or ``kill -9``.
This file is the caller's part and imports no framework; ``workers`` is the other two's.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from d2lmgpu.devices import is_count

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
_SECONDS_TO_END = 10
_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the supervisor's, and NCCL's own watchdog's
_prepared = None


class LaunchError(RuntimeError):
    """A worker process failed; the message names its rank and shows the end of its traceback."""


def launch(fn, *args, num_processes):
    """Run ``fn(*args)`` in ``num_processes`` worker processes; return their results by rank.

    ``fn`` may be defined in a notebook: it travels by value, with the globals it uses. In each
    worker ``torch.distributed`` is initialised (NCCL on GPUs, gloo on the CPU, where each worker
    computes with one thread), so ``dist.get_rank()`` and ``d2l.try_gpu(rank)`` are its number and
    its device. What rank 0 prints appears line by line; the other ranks' output is shown only
    with an error.

    Raises ValueError for ``num_processes`` below 1, TypeError for what cannot be sent to another
    process, and LaunchError if a worker raises, is killed or ends without a result. However it
    ends, no process, port or file is left behind.
    """
    global _prepared
    if not is_count(num_processes):
        raise ValueError(f"num_processes={num_processes!r}: give a whole number from 1 up.")
    num_processes, task = int(num_processes), _pickle(fn, args)
    supervisor, _prepared = _prepared or _Supervisor("torch"), None
    with supervisor.folder as folder:
        try:
            Path(folder, "task").write_bytes(task)
            exit_code = supervisor.run(num_processes)
        finally:
            supervisor.end()
        results = [Path(folder, f"result-{rank}") for rank in range(num_processes)]
        if exit_code == 0 and all(result.exists() for result in results):
            return [pickle.loads(result.read_bytes()) for result in results]
        raise LaunchError(_what_happened(Path(folder), num_processes, exit_code, supervisor.said()))


def _pickle(fn, args):
    import cloudpickle

    try:
        return cloudpickle.dumps((fn, args))
    except Exception:
        things = {f"argument {i}, a {type(arg).__name__},": arg for i, arg in enumerate(args, 1)}
        things[f"the function {getattr(fn, '__name__', fn)!r} with the globals it uses"] = fn
        for name, thing in things.items():
            try:
                cloudpickle.dumps(thing)
            except Exception as error:
                raise TypeError(
                    f"{name} cannot be sent to the worker processes ({error}). "
                    "Create it inside the function, or pass plain numbers, arrays and modules."
                ) from error
        raise


def prepare():
    """Let the processes of the next ``launch`` import PyTorch already now.

    What was prepared ends with this process.
    """
    global _prepared
    _prepared = _Supervisor("torch", "torch._dynamo")  # the first optimiser imports the latter


class _Supervisor:
    """A process that has imported ``modules`` and waits for a task.

    It has its ``folder`` from the start, so that it can remove it if this process is killed.
    """

    def __init__(self, *modules):
        # Loopback only: neither the workers nor a store of theirs may be seen from outside.
        self.settings = {
            "PYTHONPATH": os.pathsep.join(str(path) for path in sys.path if path),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": _LOOPBACK,
            "NCCL_SOCKET_IFNAME": _LOOPBACK,
        }
        self.folder = tempfile.TemporaryDirectory(prefix="d2lmgpu-", ignore_cleanup_errors=True)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "d2lmgpu.workers", self.folder.name, *modules],
            env=os.environ | self.settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            errors="replace",
            start_new_session=True,  # a notebook's interrupt reaches the kernel alone
        )

    def run(self, num_processes):
        """Let it do the task in its folder and show what rank 0 prints; its exit code."""
        task = {"num_processes": num_processes, "path": list(map(str, sys.path)),
                "environ": os.environ | self.settings}  # fmt: skip
        with contextlib.suppress(BrokenPipeError):  # it has ended: its exit code says so
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            print(line, end="", flush=True)
        return self.process.wait()

    def end(self):
        """End it and all workers."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def said(self):
        """What it has written to its log."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


def _what_happened(folder, num_processes, exit_code, said):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    no_result = [r for r in range(num_processes) if not (folder / f"result-{r}").exists()]
    exit_codes = _read_json(folder / "exit-codes") or {}
    if exit_code != 0 and not exit_codes:
        return f"The supervisor of the workers ended with {exit_code}.{_tail(said)}"
    exit_codes = dict.fromkeys(no_result, 0) | {int(r): code for r, code in exit_codes.items()}
    raised = {r: e for r in exit_codes if (e := _read_json(folder / f"error-{r}"))}

    def order(rank):
        if rank in raised:
            return 1, raised[rank]["time_ns"]
        if exit_codes[rank] in _ENDED_BY_OTHERS:
            return 3, rank
        return 0 if exit_codes[rank] < 0 else 2, rank

    rank = min(exit_codes, key=order)
    if rank in raised:
        # Formatted here because only the caller knows the source lines of a notebook's cells.
        frames = traceback.StackSummary.from_list(raised[rank]["frames"]).format()[-5:]
        what = f"raised {raised[rank]['error']}\n\nThe end of its traceback:\n{''.join(frames)}"
    elif exit_codes[rank] < 0:
        what = f"was killed by {signal_name(-exit_codes[rank])}"
        if exit_codes[rank] == -signal.SIGKILL:
            what += " (by the system, if memory ran out)"
    else:
        what = f"ended without a result (exit code {exit_codes[rank]})"
    return f"Worker {rank} of {num_processes} {what.rstrip()}{_tail(_read(folder / f'log-{rank}'))}"


def signal_name(number):
    """SIGKILL for 9; Python has no names for the real-time signals."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _read_json(file):
    return json.loads(file.read_text()) if file.exists() else None


def _read(log):
    return log.read_text(errors="replace") if log.exists() else ""


def _tail(text, lines=15):
    text = text.rstrip()
    return "\n\nThe end of its output:\n" + "\n".join(text.splitlines()[-lines:]) if text else ""
