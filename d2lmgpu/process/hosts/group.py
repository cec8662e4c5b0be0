"""Workers on several hosts, as the process sees them that has started them.

    the caller → ssh or srun → an agent on each host → a guard → the supervisor → its workers

The caller holds the store in which all workers meet. One message pipe a host carries the job there,
and back what is printed, reported, returned and raised: see ``frames``.
"""

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
import time

from d2lmgpu.process.child import end_in_words
from d2lmgpu.process.failures import LaunchError
from d2lmgpu.process.hosts import frames
from d2lmgpu.process.hosts.greeting import check_addresses, check_versions
from d2lmgpu.process.output import end_of
from d2lmgpu.process.settings import versions

BEGIN = 30  # seconds in which Python starts on a host
GRACE = 2  # seconds that the other hosts have to say why they failed, once one has
LEAVE = 8  # seconds that a host has to end everything
MESSAGES = 64  # that wait to be read, of 64 KiB at most
END = b""  # the kind of what is no message: the link has ended


class Link:
    """One host: a thread that writes messages to it, one that puts what comes in ``inbox``."""

    def __init__(self, host, inbox):
        self.host = host
        self.inbox = inbox
        self._process = None
        self.hello = None
        self.silent = self.over = False
        self.ahead = -float("inf")  # nanoseconds that the host's clock is ahead of ours, at least
        self._outbox, self._closing = queue.SimpleQueue(), threading.Event()

    def start(self, command, environ) -> None:
        """Start the agent there by ``command``: ssh or srun."""
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed in kill; it has no name)
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # a notebook's interrupt reaches the kernel alone
        )
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True, name=f"{work.__name__} {self.host}").start()

    def send(self, kind, content=b"") -> None:
        self._outbox.put((kind, content))

    def _write(self):
        send = frames.Sender(self._process.stdin)
        with contextlib.suppress(OSError), self._process.stdin:
            while not self._closing.is_set():
                try:
                    send(*self._outbox.get(timeout=frames.EVERY))
                except queue.Empty:
                    send(frames.BEAT)

    def _read(self):
        try:
            for kind, content in frames.received(self._process.stdout, BEGIN, frames.FIRST):
                if kind == frames.BEAT:
                    self.ahead = max(self.ahead, int(content) - time.time_ns())
                else:
                    self._put(kind, content)
        except TimeoutError:
            self.silent = True
        finally:
            self._put(END, b"")

    def _put(self, kind, content):
        """Hand on what came; while nobody takes it, the host waits, and its output with it."""
        while not self._closing.is_set():
            with contextlib.suppress(queue.Full):
                return self.inbox.put((self, kind, content), timeout=1)

    def end_in_words(self) -> str:
        """Why the host has gone, or could not be had."""
        if self.silent and self.hello:
            return f"nothing was heard from it for {frames.SILENCE} s: it or the link has stopped"
        if self.silent:
            return f"it did not start a Python within {BEGIN} s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        words = end_of(self._words).strip().splitlines()[-5:]
        code = self._process.returncode
        closed = code in (None, 255)  # None: what led there has not ended yet
        ending = "the connection was closed" if closed else f"its way {end_in_words(code)}"
        return "\n".join(words) or ending

    def close(self) -> None:
        """Tell the host to end everything."""
        self._closing.set()
        self.send(frames.BEAT)  # wakes the thread

    def wait(self, deadline) -> None:
        """Wait until it has; where it cannot say so any more, not for long."""
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0 if self.silent else max(0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._words.close()


class Hosts:
    """The processes of ``group``, a ``WorkerGroup``, on several hosts: used as a ``Child`` is.

    ``transport`` reaches the hosts: an ``ssh.Ssh`` or a ``slurm.Allocation``. Nothing runs before
    ``send``: an interrupt from then on finds all that was started.
    """

    def __init__(self, transport, group):
        self.environ = {}
        self._store = None
        self._files = {}
        self._inbox = queue.Queue(MESSAGES)
        self._transport, self._group = transport, group
        self._links = [Link(host, self._inbox) for host in transport.hosts]
        self._busy = set(self._links)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def processes(self) -> dict:
        """The hosts, in the order of their ranks, and the names of the processes on each."""
        number = len(self._links)
        return {link.host: self._group.on_host(i, number) for i, link in enumerate(self._links)}

    def send(self, job: bytes) -> None:
        """Start the hosts, and give the workers their job once all of them are there.

        Raises LaunchError for a host that does not answer, or has another Python or package.
        """
        framework = self._group.framework
        commands = self._transport.commands(framework)
        for link in self._links:
            link.start(commands[link.host], self._transport.environ)
        self._group.prepare()
        waiting, own_versions = set(self._links), versions(framework)
        while waiting:
            link, kind, content = self._inbox.get()
            if kind == END:
                raise LaunchError(f"Host {link.host} cannot be used: {link.end_in_words()}.")
            link.hello = json.loads(content)
            check_versions(link.host, link.hello, own_versions)
            waiting.remove(link)
        check_addresses(self._links)
        self._links, self._store, meeting = self._group.meet(self._links)
        for link in self._links:
            place = {
                "processes": self.processes[link.host],
                "store": meeting,
                "address": link.hello["address"],
            }
            link.send(frames.PLACE, json.dumps(place).encode())
            for piece in frames.pieces(job):
                link.send(frames.JOB, piece)
            link.send(frames.START)

    def read(self, on_event, on_output, on_errors) -> dict:
        """Hand on events and output until all hosts are done, or one has failed; the last event.

        As ``Child.read``, with the codes of all processes, and ``lost``: why, by host.
        """
        codes = {name: None for names in self.processes.values() for name in names}
        end, deadline = {"event": "exit", "codes": codes, "supervisor": None, "lost": {}}, None
        while not all(link.over for link in self._links):
            left = None if deadline is None else deadline - time.monotonic()
            try:
                link, kind, content = self._inbox.get(timeout=left and max(0, left))
            except queue.Empty:
                break
            if kind == frames.OUTPUT:
                on_output(content)
            elif kind == frames.ERRORS:
                on_errors(content)
            elif kind == frames.EVENT:
                on_event(json.loads(content))
            elif kind == frames.DONE:
                self._note_done(link)
            elif kind == frames.FILE:
                name, piece = content.split(b"\n", 1)
                name = f"log-{link.host}" if name == b"log" else name.decode()
                self._files.setdefault(name, bytearray()).extend(piece)
            elif not link.over:
                link.over = True
                self._note_done(link)
                failed = self._note_end(link, None if kind == END else json.loads(content), end)
                if failed and deadline is None:
                    deadline = time.monotonic() + GRACE
        return end | {"codes": list(codes.values())}

    def _note_done(self, link):
        """The workers of a host are done; with the last ones, what serves them may end."""
        self._busy.discard(link)
        for each in [] if self._busy else self._links:
            each.send(frames.DONE)

    def left(self, name) -> bytes | None:
        """The content of a file that the workers have left on their hosts, None without one."""
        return bytes(self._files[name]) if name in self._files else None

    def log(self, name) -> str | None:
        """The end of a file that they have printed to, as text; None without one."""
        return self._files[name].decode(errors="replace") if name in self._files else None

    def _note_end(self, link, last, end):
        """Add the last event of a host, None without one; whether the host has failed."""
        if last is None:
            end["lost"][link.host] = link.end_in_words()
            return True
        if last["codes"] is None:
            end["lost"][link.host] = f"the supervisor there ended with {last['supervisor']}"
            return True
        names = self.processes[link.host]
        for name, code in zip(names, last["codes"], strict=True):
            end["codes"][name] = code
            if error := self.left(f"error-{name}"):  # its time as our clock would have told it
                raised = json.loads(error)
                raised["time_ns"] -= link.ahead
                self._files[f"error-{name}"] = json.dumps(raised).encode()
        return any(name.isdigit() and f"result-{name}" not in self._files for name in names)

    def close(self) -> None:
        """End whatever still runs on the hosts, and return once nothing of it is left there."""
        deadline = time.monotonic() + LEAVE
        try:
            for link in self._links:
                link.close()
            for link in self._links:
                link.wait(deadline)
        finally:
            for link in self._links:
                link.kill()
            self._store = None
