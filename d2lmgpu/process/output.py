"""What processes print, in bounded memory: its beginning and its end, and how much was between."""

import codecs
import os
import time

TAIL = 20_000  # bytes: of an output its end, as a rule
LONGEST = 1 << 20  # bytes of a line that are kept
BURST, RATE = 4 << 20, 50_000  # bytes that are shown at once, and a second for ever
CONTINUED = bytes(range(0x80, 0xC0))  # these only go on with a character of UTF-8


class Bounded:
    """Keeps the first ``head`` and the last ``tail`` bytes of all that is added.

    ``size`` is the number of all bytes, kept or not, ``lines`` that of their lines, which may be
    long, or have no end.
    """

    def __init__(self, head: int, tail: int):
        self._most = head
        self._keep = tail
        self.size = 0
        self._ends = 0
        self._last = b"\n"
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Go on with ``data``."""
        self.size += len(data)
        self._ends, self._last = self._ends + data.count(b"\n"), data[-1:] or self._last
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, len(data) - self._keep) :]
        if len(self._tail) > 2 * self._keep:  # not each time: what is kept moves
            del self._tail[: len(self._tail) - self._keep]

    @property
    def lines(self) -> int:
        return self._ends + (self._last != b"\n")

    def text(self) -> str:
        """What was kept; between head and tail, in a line of its own, how many bytes were not."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._keep) :])
        if self.size <= len(self._head) + len(tail):
            return (self._head + tail).decode(errors="replace")
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        head = decoder.decode(self._head)  # without a character that was cut in two
        tail = tail[:3].lstrip(CONTINUED) + tail[3:]
        length = len(self._head) - len(decoder.getstate()[0]) + len(tail)
        between = f"[… {self.size - length:,} bytes left out …]"
        return "\n".join(filter(None, (head, between, tail.decode(errors="replace"))))


def cut(text: str, head: int, tail: int) -> str:
    """``text``, of which only so many bytes of its beginning and its end are left."""
    bounded = Bounded(head, tail)
    bounded.add(text.encode(errors="replace"))
    return bounded.text()


def end_of(file) -> str:
    """The last bytes of a file that is open, and how many there were before them."""
    end = Bounded(0, TAIL)
    end.size = max(0, os.fstat(file.fileno()).st_size - TAIL)
    file.seek(end.size)
    end.add(file.read(TAIL))
    return end.text()


class Lines:
    """Cuts bytes that come in pieces into lines; of one above ``LONGEST`` the end is kept."""

    def __init__(self):
        self._rest = b""

    def __call__(self, data: bytes):
        """The lines that end in ``data``, without those that are empty."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-LONGEST:]
        return filter(None, lines)


class Shown:
    """Shows what is printed as it comes, by ``show(text)``; of a flood not more than can be read.

    That is a notebook that takes all the memory of a browser, and a file that nobody can open. So
    ``BURST`` bytes are shown at once and ``RATE`` bytes a second; of more the end, later or by
    ``close``, and how much was left out.
    """

    def __init__(self, show, clock=time.monotonic):
        self._show, self._clock = show, clock
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._room = BURST
        self._at = clock()
        self._held = None
        self._in_line = False

    def __call__(self, data: bytes):
        now = self._clock()
        self._room, self._at = min(BURST, self._room + RATE * (now - self._at)), now
        if self._held is None and len(data) <= self._room:
            self._room -= len(data)
            self._put(self._decode(data))
        else:
            self._held = self._held or Bounded(0, TAIL)
            self._held.add(data)
            if self._room > 2 * TAIL:
                self._room -= 2 * TAIL
                self.close()

    def close(self) -> None:
        """Show what was held back."""
        if self._held is not None:
            self._put("\n" * self._in_line + self._held.text())
        self._held = None

    def _put(self, text):
        self._in_line = not text.endswith("\n")
        self._show(text)
