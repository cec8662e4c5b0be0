"""Worker processes for DistributedDataParallel, started from a notebook.

``launch(fn, *args, num_processes=k)`` runs ``fn(*args)`` in k processes that can talk through
``torch.distributed``. Three kinds of process take part, each of them started by the one before:

    the caller (a notebook's kernel) → a supervisor with torch's elastic launcher → the workers

The launcher replaces signal handlers, so it must not run in a kernel. Each process holds a pipe
to the one before it and ends when that pipe does: by an interrupt, a crash or ``kill -9``.
This file is the caller's part and imports no framework; ``workers`` is the other two's.
"""

import json
import numbers
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
_SECONDS_TO_END = 10
_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the launcher's, and NCCL's own watchdog's


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
    whole = isinstance(num_processes, numbers.Integral) and not isinstance(num_processes, bool)
    if not whole or num_processes < 1:
        raise ValueError(f"num_processes={num_processes!r}: give a whole number from 1 up.")
    task = _pickle(fn, args)
    with tempfile.TemporaryDirectory(prefix="d2lmgpu-", ignore_cleanup_errors=True) as folder:
        Path(folder, "task").write_bytes(task)
        exit_code = _run_supervisor(folder, num_processes)
        results = [Path(folder, f"result-{rank}") for rank in range(num_processes)]
        if exit_code == 0 and all(result.exists() for result in results):
            return [pickle.loads(result.read_bytes()) for result in results]
        raise LaunchError(_what_happened(Path(folder), num_processes, exit_code))


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


def _run_supervisor(folder, num_processes):
    """Run the supervisor to its end, showing what rank 0 prints; return its exit code."""
    search_path = os.pathsep.join(path for path in sys.path if path)
    # Loopback only: neither the workers nor the launcher's own store may be seen from outside.
    settings = {
        "PYTHONPATH": search_path,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": _LOOPBACK,
        "NCCL_SOCKET_IFNAME": _LOOPBACK,
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    theirs, ours = os.pipe()
    supervisor = None
    try:
        with open(Path(folder, "log"), "wb") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "d2lmgpu.workers", "supervise", folder, str(num_processes)],
                env=os.environ | settings,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                start_new_session=True,  # a notebook's interrupt reaches the kernel alone
            )
        for line in supervisor.stdout:
            print(line, end="", flush=True)
        return supervisor.wait()
    finally:
        os.close(ours)  # this ends them all, even where no supervisor was assigned yet
        os.close(theirs)
        if supervisor is not None:
            try:
                supervisor.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
            supervisor.stdout.close()


def _what_happened(folder, num_processes, exit_code):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    no_result = [r for r in range(num_processes) if not (folder / f"result-{r}").exists()]
    exit_codes = _read_json(folder / "exit-codes") or {}
    if exit_code != 0 and not exit_codes:
        return f"The supervisor of the workers ended with {exit_code}.{_tail(folder / 'log')}"
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
        what = f"was killed by {signal.Signals(-exit_codes[rank]).name}"
        if exit_codes[rank] == -signal.SIGKILL:
            what += " (by the system, if memory ran out)"
    else:
        what = f"ended without a result (exit code {exit_codes[rank]})"
    return f"Worker {rank} of {num_processes} {what.rstrip()}{_tail(folder / f'log-{rank}')}"


def _read_json(file):
    return json.loads(file.read_text()) if file.exists() else None


def _tail(log, lines=15):
    text = log.read_text(errors="replace").rstrip() if log.exists() else ""
    return "\n\nThe end of its output:\n" + "\n".join(text.splitlines()[-lines:]) if text else ""
