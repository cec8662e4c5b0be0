"""A supervisor and its workers, as the process sees them that has started them."""

import contextlib
import json
import os
import platform
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from d2lmgpu.machine.cache import cache
from d2lmgpu.process.roles import LOOPBACK_INTERFACE
from d2lmgpu.process.settings import STANDARD, PythonError, run_module
from d2lmgpu.process.supervisor import remove

_RANKS = run_module("d2lmgpu.process.ranks")
# The supervisor of one worker, whose command follows; it must start at once.
ONE_WORKER = [sys.executable, "-S", "-E", Path(__file__).with_name("supervisor.py")]
CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"}


def check_forks():
    """Raises PythonError where no process can fork: on Windows."""
    if not hasattr(os, "fork"):
        raise PythonError(
            "launch, the training lab and checked exercises need processes that fork, and "
            f"{platform.system()} has none. Use Linux or macOS; on Windows, WSL (wsl --install). "
            "What has its devices in threads, as the chapters from scratch, runs here."
        )


class Child:
    """Workers under a supervisor: they get one job, report events, print, and end.

    ``program`` is the supervisor's command; JOB, EVENTS and FOLDER (see ``supervisor``) and
    ``arguments`` follow it. ``environ`` is added to its environment. Raises PythonError on Windows.
    """

    def __init__(self, program, arguments, environ):
        check_forks()
        self.folder = Path(tempfile.mkdtemp(prefix="d2lmgpu-"))
        self.environ = {"TMPDIR": str(self.folder), **_kept(), **environ}
        pipes = life, job, events, output = [os.pipe() for _ in range(4)]
        try:
            self._process = subprocess.Popen(
                [*map(str, [*program, job[0], events[1], self.folder, *arguments])],
                env=os.environ | self.environ,
                stdin=life[0],
                stdout=output[1],
                stderr=output[1],
                pass_fds=[job[0], events[1]],
                start_new_session=True,  # a notebook's interrupt reaches the kernel alone
            )
        except OSError:
            self.folder.rmdir()
            raise
        finally:
            for theirs in (life[0], job[0], events[1], output[1]):
                os.close(theirs)
            # File objects: a write after close is an error, not a write to somebody else's pipe.
            self._life, self._job = (os.fdopen(w, "wb", buffering=0) for _, w in pipes[:2])
            self._events, self._output = (os.fdopen(r, "rb", buffering=0) for r, _ in pipes[2:])

    @property
    def pid(self):
        """Process id of the guard, below which everything else is."""
        return self._process.pid

    def send(self, job: bytes):
        """Give the workers their job, from a thread: a large one waits until it is read."""

        def write():
            with contextlib.suppress(OSError, ValueError), self._job:  # their exit says why
                rest = memoryview(job)
                while rest:
                    rest = rest[self._job.write(rest) :]

        threading.Thread(target=write, daemon=True, name="job").start()

    def interrupt(self):
        """Raise KeyboardInterrupt in the workers."""
        self._say(b"i")

    def finish(self):
        """End what serves the workers: they are ``done``, here and wherever others are."""
        self._say(b"d")

    def _say(self, byte):
        with contextlib.suppress(OSError, ValueError):
            self._life.write(byte)

    def kill(self):
        """End the workers and everything that they have started."""
        self._life.close()

    def read(self, on_event, on_output):
        """Hand on events (dicts) and output (bytes) until everything has ended; the last event.

        That is ``exit`` with ``codes``, the exit codes of the workers: None for a worker that was
        ended, and for all where the supervisor was. ``supervisor`` is its own exit code, None if
        the guard was killed, too.
        """
        pending, over = b"", False
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(1)
                if over and not ready:
                    break  # the guard was killed, and something that escaped has the pipes
                over = self._process.poll() is not None
                for key, _ in ready:
                    data = key.fileobj.read(65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._output:
                        on_output(data)
                    else:
                        *lines, pending = (pending + data).split(b"\n")
                        for line in lines:
                            event = _parsed(line)
                            if event is None:
                                on_output(f"not an event: {line[:200]!r}\n".encode())
                            elif event["event"] != "exit":
                                on_event(event)
                            else:
                                self._drain(on_output)
                                return event
        return {"event": "exit", "codes": None, "supervisor": None}

    def left(self, name):
        """The content of a file that the workers have left in the folder, None without one."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()

    def _drain(self, on_output):
        """Hand on what was printed before everything ended."""
        os.set_blocking(self._output.fileno(), False)
        while data := self._output.read(65536):
            on_output(data)

    def close(self):
        """End whatever still runs, and return once no process and no file of it is left."""
        self.kill()
        self._process.wait()
        remove(self.folder)  # if guard and supervisor were killed
        for pipe in (self._job, self._events, self._output):
            pipe.close()


def start_ranks(*modules, interface=LOOPBACK_INTERFACE):
    """A supervisor for the workers of ``launch`` that imports ``modules`` first.

    They speak to each other through the network ``interface``: by default neither they nor a store
    of theirs can be seen from outside. None leaves the choice to gloo and NCCL.
    """
    # What was added to the path since this process began comes after Python's own, so that nothing
    # beside the notebook is taken for one of its modules.
    path = [os.environ.get("PYTHONPATH"), STANDARD, os.path.join(STANDARD, "lib-dynload")]
    path = filter(None, [*path, *map(str, sys.path)])
    environ = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    if interface:
        environ |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return Child(_RANKS, modules, environ)


def _parsed(line):
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict) and "event" in event:
            return event
    return None  # a worker wrote into the pipe itself


def _kept():
    """Where PyTorch's compiler keeps its results: not in TMPDIR, so that later runs find them."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    return {variable: os.environ.get(variable) or str(cache() / "compiled")}


def end_in_words(code):
    """How a worker ended with the exit code ``code`` and without a word of its own."""
    if code >= 0:
        return f"ended without a result (exit code {code})"
    known = -code in set(signal.Signals)  # Python has no names for the real-time signals
    words = f"was killed by {signal.Signals(-code).name if known else f'signal {-code}'}"
    if code == -signal.SIGKILL:
        words += ": mostly by the system, if memory ran out (try a smaller batch or fewer devices)"
    elif known and signal.Signals(-code).name in CRASHES:
        words += ": it crashed in compiled code"
    return words
