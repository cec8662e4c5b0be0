"""One supervised worker process, as the notebook sees it."""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

SUPERVISOR = Path(__file__).with_name("supervisor.py")
LOG_SIZE = 20_000  # bytes of the log that are kept


class WorkerProcess:
    """A worker with some ``modules`` of this package imported, which waits for one job.

    The last of its events is ``{"event": "exit", "code": n}`` with the exit code of the worker, or
    None where the supervisor itself was killed. By then no process and no file of it is left.
    """

    def __init__(self, modules):
        self.modules, self.log, self.ended = modules, b"", False
        self._events_seen, self._started = [], False
        self._listeners, self._listening = [], threading.Lock()
        self.folder = tempfile.mkdtemp(prefix="d2lmgpu-lab-")
        pipes = life, job, events, log = [os.pipe() for _ in range(4)]
        supervise = [sys.executable, "-S", "-E", SUPERVISOR, job[0], events[1], self.folder]
        work = [sys.executable, "-u", "-m", "d2lmgpu.lab.worker", *modules]
        self._process = subprocess.Popen(
            [*map(str, supervise), *work],
            stdin=life[0],
            stdout=log[1],
            stderr=log[1],
            pass_fds=[job[0], events[1]],
            start_new_session=True,  # a notebook's interrupt reaches the kernel alone
        )
        for theirs in (life[0], job[0], events[1], log[1]):
            os.close(theirs)
        # File objects: a write after close is an error, not a write to somebody else's pipe.
        self._life, self._job = (os.fdopen(w, "wb", buffering=0) for _, w in pipes[:2])
        self._events, self._log = (os.fdopen(r, "rb", buffering=0) for r, _ in pipes[2:])
        self.thread = threading.Thread(target=self._read, daemon=True, name="lab-reader")
        self.thread.start()

    @property
    def pid(self):
        """Process id of the supervisor."""
        return self._process.pid

    def listen(self, on_event):
        """Call ``on_event(dict)`` for every event so far and up to the job, from other threads."""
        with self._listening:
            self._add(on_event)

    def start(self, job: bytes, on_event):
        """Give the worker its job; from now on ``on_event`` alone hears of it, from the start.

        Where the worker has gone, its exit says so.
        """
        with self._listening:  # at once: an event in between would be nobody's
            self._started, self._listeners = True, []
            self._add(on_event)
        # A large job waits until the worker reads; whoever called must hear of a stop meanwhile.
        threading.Thread(target=self._send, args=[job], daemon=True, name="lab-send").start()

    def _add(self, on_event):
        self._listeners.append(on_event)
        for event in self._events_seen:
            on_event(event)

    def _send(self, job):
        with contextlib.suppress(OSError, ValueError), self._job:
            view = memoryview(job)
            while view:
                view = view[self._job.write(view) :]

    def interrupt(self):
        """Raise KeyboardInterrupt in the worker."""
        self._tell(b"i")

    def kill(self):
        """End the worker and everything that it started."""
        self._tell(b"k")

    def _tell(self, word):
        with contextlib.suppress(OSError, ValueError):
            self._life.write(word)

    def _read(self):
        """Hand on events and keep the end of the log, until the supervisor has ended."""
        pending, code, over = b"", None, False
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            selector.register(self._log, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(0 if over else 1)
                if over and not ready:
                    break  # the supervisor was killed, and something that escaped has the pipes
                over = self._process.poll() is not None
                for key, _ in ready:
                    data = key.fileobj.read(65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._log:
                        self.log = (self.log + data)[-LOG_SIZE:]
                    else:
                        *lines, pending = (pending + data).split(b"\n")
                        for line in lines:
                            event = self._parsed(line)
                            if event.get("event") == "exit":
                                code = event["code"]
                            elif event:
                                self._hear(event)
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)  # if the supervisor could not
        for pipe in (self._life, self._job, self._events, self._log):
            pipe.close()
        self.ended = True
        self._hear({"event": "exit", "code": code})

    def _parsed(self, line):
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and "event" in event:
                return event
        self._note(f"not an event: {line[:200]!r}")  # the run wrote into the pipe itself
        return {}

    def _hear(self, event):
        with self._listening:
            if not self._started:  # a spare is listened to more than once
                self._events_seen.append(event)
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception:  # a picture that cannot be drawn must not end the reading
                    self._note(traceback.format_exc())

    def _note(self, text):
        self.log = (self.log + text.encode() + b"\n")[-LOG_SIZE:]
