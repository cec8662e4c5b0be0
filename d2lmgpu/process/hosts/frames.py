"""Messages through the pipe between a caller and its agent on a host: a kind, a length, bytes.

    caller → agent   PLACE (JSON), JOB (a piece of it), START, DONE (all workers are), BEAT
    agent → caller   HELLO (JSON), OUTPUT and ERRORS (of rank 0), EVENT (JSON), DONE (the workers
                     here are), FILE (name, newline, a piece), EXIT (JSON), BEAT (its clock)

Each side sends a BEAT where it has nothing else to say: whoever hears nothing for ``SILENCE``
seconds knows that the other one, or the link, has gone. The standard library only.
"""

import os
import select
import struct
import threading
from collections.abc import Iterator

PLACE, JOB, START, DONE = (bytes([c]) for c in b"pjsd")
HELLO, OUTPUT, ERRORS, EVENT, FILE, EXIT, BEAT = (bytes([c]) for c in b"horefxb")
PIECE = 1 << 16  # bytes: a BEAT waits for no more than that
EVERY, SILENCE = 0.5, 6  # seconds
FIRST = b"\nd2lmgpu: messages follow\n"  # what a login shell may print before is passed over
_HEADER = struct.Struct(">cI")


class Sender:
    """Sends messages through a pipe, from any thread."""

    def __init__(self, pipe):
        self._pipe, self._lock = pipe, threading.Lock()

    def __call__(self, kind: bytes, content: bytes = b""):
        """Raises OSError where nobody reads any more."""
        with self._lock:
            self.plain(_HEADER.pack(kind, len(content)) + content)

    def plain(self, data: bytes) -> None:
        """Send bytes that are no message."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._pipe.write(rest) :]


def pieces(data: bytes) -> Iterator[bytes]:
    """``data`` in the sizes in which it is sent."""
    view = memoryview(data)
    return (bytes(view[i : i + PIECE]) for i in range(0, len(data), PIECE))


def received(pipe, seconds, first=b"") -> Iterator[tuple]:
    """``(kind, content)`` of each message until the pipe ends, after the bytes ``first``.

    Raises TimeoutError if nothing comes for ``SILENCE`` seconds, ``seconds`` before the first.
    """
    data, poll = bytearray(), select.poll()
    poll.register(pipe, select.POLLIN)
    while poll.poll(1000 * seconds):
        more = os.read(pipe.fileno(), PIECE)
        if not more:
            return
        data += more
        if first in data:
            del data[: data.index(first) + len(first)]
            first, seconds = b"", SILENCE
        while not first and len(data) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(data)
            if len(data) < _HEADER.size + size:
                break
            content = bytes(data[_HEADER.size : _HEADER.size + size])
            del data[: _HEADER.size + size]
            yield kind, content
    raise TimeoutError
