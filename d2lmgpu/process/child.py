"""A supervisor and its workers, as the process sees them that has started them."""

import contextlib
import json
import math
import os
import platform
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from d2lmgpu.machine.cache import cache
from d2lmgpu.process.output import Lines, end_of
from d2lmgpu.process.settings import PythonError
from d2lmgpu.process.supervisor import remove

# The supervisor of one worker, whose command follows; it must start at once.
ONE_WORKER = [sys.executable, "-S", "-E", Path(__file__).with_name("supervisor.py")]
PIPE_SIZE = 1 << 20  # bytes: a pipe holds no more
CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"}


def check_forks() -> None:
    """Raises PythonError where no process can fork: on Windows."""
    if not hasattr(os, "fork"):
        raise PythonError(
            "launch, the training lab and checked exercises need processes that fork, and "
            f"{platform.system()} has none. Use Linux or macOS; on Windows, WSL (wsl --install). "
            "What has its devices in threads, as the chapters from scratch, runs here."
        )


class Child:
    """Workers under a supervisor: they get one job, report events, print, and end.

    It owns their processes: as a context manager it leaves nothing of them, however that ends.
    ``send`` gives them the job, ``read`` hands on what they say up to their end, and ends them at a
    time limit: ``expired`` says whether it had to.

    ``program`` is the supervisor's command; JOB, EVENTS and FOLDER (see ``supervisor``) and
    ``arguments`` follow it. ``environ`` is added to its environment. With ``errors_apart`` what is
    written to standard error has a pipe of its own. A ``fork_server`` forks the program, which it
    has imported, in place of a start. A program that is started also gets the file descriptors
    ``handed``. Raises PythonError on Windows, and where no process can be
    started; ConnectionError where the fork server has ended.
    """

    def __init__(
        self, program, arguments, environ, errors_apart=False, fork_server=None, handed=()
    ):
        check_forks()
        self._left = {}
        self.expired = False
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            try:
                self.folder = Path(tempfile.mkdtemp(prefix="d2lmgpu-"))
                ours.callback(remove, self.folder)
                self.environ = {"TMPDIR": str(self.folder), **_kept(), **environ}
                life, self._life = _pipe(theirs, ours, writes=True)
                job, self._job = _pipe(theirs, ours, writes=True)
                events, self._events = _pipe(theirs, ours)
                output, self._output = _pipe(theirs, ours)
                errors, self._errors = _pipe(theirs, ours) if errors_apart else (output, None)
                if fork_server:
                    pipes = [pipe.fileno() for pipe in (life, output, errors, job, events)]
                    self._process = fork_server.fork(self.folder, arguments, pipes)
                else:
                    places = job.fileno(), events.fileno(), self.folder
                    self._process = subprocess.Popen(
                        [*map(str, [*program, *places, *arguments])],
                        env=os.environ | self.environ,
                        stdin=life,
                        stdout=output,
                        stderr=errors,
                        pass_fds=[job.fileno(), events.fileno(), *handed],
                        start_new_session=True,  # a notebook's interrupt reaches the kernel alone
                    )
            except ConnectionError:
                raise
            except OSError as error:
                raise PythonError(f"No worker process can be started: {error}.") from error
            ours.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the guard, below which everything else is."""
        return self._process.pid

    def send(self, job: bytes) -> None:
        """Give the workers their job, from a thread: a large one waits until it is read.

        Raises PythonError where no thread can be started.
        """

        def write():
            with contextlib.suppress(OSError, ValueError), self._job:  # their exit says why
                rest = memoryview(job)
                while rest:
                    rest = rest[self._job.write(rest) :]

        try:
            threading.Thread(target=write, daemon=True, name="job").start()
        except RuntimeError as error:
            raise PythonError(f"No worker can get its job: {error}.") from error

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the workers."""
        self._say(b"i")

    def finish(self) -> None:
        """End what serves the workers: they are ``done``, here and wherever others are."""
        self._say(b"d")

    def _say(self, byte):
        with contextlib.suppress(OSError, ValueError):
            self._life.write(byte)

    def kill(self) -> None:
        """End the workers and everything that they have started."""
        self._life.close()

    def read(self, on_event, on_output, on_errors=None, time_limit=math.inf) -> dict:
        """Hand on events (dicts) and output (bytes) until everything has ended; the last event.

        What still runs ``time_limit`` seconds from now is ended then.

        That is ``exit`` with ``codes``, the exit codes of the workers: None for a worker that was
        ended, and for all where the supervisor was. ``supervisor`` is its own exit code, None if
        the guard was killed, too. ``on_errors`` gets what is written to standard error, where that
        has its own pipe.
        """
        lines, over, deadline = Lines(), False, time.monotonic() + time_limit
        readers = {self._events: lines, self._output: on_output, self._errors: on_errors}
        with selectors.DefaultSelector() as selector:
            for pipe in filter(None, readers):
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0 and not self.expired:
                    self.expired = True
                    self.kill()
                ready = selector.select(1 if self.expired else min(1, left))
                if over and not ready:
                    break  # the guard was killed, and something that escaped has the pipes
                over = self._process.poll() is not None
                for key, _ in ready:
                    data = key.fileobj.read(65536)
                    if not data:
                        selector.unregister(key.fileobj)
                        continue
                    for line in readers[key.fileobj](data) or ():
                        end = self._take(line, on_event, on_output)
                        if end is not None:
                            for pipe in filter(None, (self._output, self._errors)):
                                _drain(pipe, readers[pipe])
                            return end
        return {"event": "exit", "codes": None, "supervisor": None}

    def _take(self, line, on_event, on_output):
        """Hand on what a line of the events' pipe says; gives the event ``exit``, and no other."""
        other, event = _parsed(line)
        if other:
            on_output(f"not an event: {other[:200]!r}\n".encode())
        if event is None or event["event"] == "exit":
            return event
        if event["event"] == "left":
            self._left[event["name"]] = json.dumps(event).encode()
        else:
            on_event(event)
        return None

    def left(self, name) -> bytes | None:
        """The content of a file that the workers have left in the folder, None without one."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return self._left.get(name)

    def log(self, name) -> str | None:
        """The end of a file that the workers have printed to, as text; None without one."""
        with contextlib.suppress(FileNotFoundError), open(self.folder / name, "rb") as file:
            return end_of(file)
        return None

    def close(self) -> None:
        """End whatever still runs, and return once no process and no file of it is left."""
        self.kill()
        self._process.wait()
        remove(self.folder)  # if guard and supervisor were killed
        for pipe in filter(None, (self._job, self._events, self._output, self._errors)):
            pipe.close()


def _pipe(theirs, ours, writes=False):
    """A pipe: their end and our own, which ``writes`` or reads; each is closed with its stack.

    File objects: a write after close is an error, not a write to somebody else's pipe.
    """
    reader, writer = os.pipe()
    reader, writer = os.fdopen(reader, "rb", buffering=0), os.fdopen(writer, "wb", buffering=0)
    their_end, our_end = (reader, writer) if writes else (writer, reader)
    return theirs.enter_context(their_end), ours.enter_context(our_end)


def _drain(pipe, hand_on):
    """Hand on what was printed before everything ended; something that escaped may print on."""
    os.set_blocking(pipe.fileno(), False)
    room = PIPE_SIZE
    while room > 0 and (data := pipe.read(65536)):
        hand_on(data)
        room -= len(data)


def _parsed(line):
    """What of a line is no event, as a worker wrote into the pipe itself, and the event, or None.

    That may have no end of a line: then an event follows in the same one.
    """
    for begin in (0, max(0, line.rfind(b'{"event": '))):
        with contextlib.suppress(ValueError):
            event = json.loads(line[begin:])
            if isinstance(event, dict) and "event" in event:
                return line[:begin], event
    return line, None


def _kept():
    """Where PyTorch's compiler keeps its results: not in TMPDIR, so that later runs find them."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    return {variable: os.environ.get(variable) or str(cache() / "compiled")}


def _cpu_time():
    """That the CPU time which a process may use was used up, where there is a limit."""
    import resource  # which Windows lacks

    limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    known = limit != resource.RLIM_INFINITY
    return f"its {limit} s of CPU time were used up (ulimit -t) or " if known else ""


def end_in_words(code) -> str:
    """How a worker ended with the exit code ``code`` and without a word of its own."""
    if code >= 0:
        return f"ended without a result (exit code {code})"
    known = -code in set(signal.Signals)  # Python has no names for the real-time signals
    words = f"was killed by {signal.Signals(-code).name if known else f'signal {-code}'}"
    if code == -signal.SIGKILL:
        words += f": mostly by the system, if {_cpu_time()}memory ran out (try a smaller batch or "
        words += "fewer devices)"
    elif code == -signal.SIGXCPU:
        words += ": its CPU time was used up (ulimit -t)"
    elif known and signal.Signals(-code).name in CRASHES:
        words += ": it crashed in compiled code"
    return words
