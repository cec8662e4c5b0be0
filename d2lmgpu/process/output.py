"""What processes print, in bounded memory: its beginning and its end, and how much was between."""

import codecs

CONTINUED = bytes(range(0x80, 0xC0))  # these only go on with a character of UTF-8


class Bounded:
    """Keeps the first ``head`` and the last ``tail`` bytes of all that is added.

    ``size`` is the number of all bytes, kept or not. Lines may be long, or have no end.
    """

    def __init__(self, head: int, tail: int):
        self._most, self._keep, self.size = head, tail, 0
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes):
        """Go on with ``data``."""
        self.size += len(data)
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, len(data) - self._keep) :]
        if len(self._tail) > 2 * self._keep:  # not each time: what is kept moves
            del self._tail[: len(self._tail) - self._keep]

    def text(self) -> str:
        """What was kept; between head and tail, in a line of its own, how many bytes were not."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._keep) :])
        if self.size <= len(self._head) + len(tail):
            return (self._head + tail).decode(errors="replace")
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        head = decoder.decode(self._head)  # without a character that was cut in two
        tail = tail[:3].lstrip(CONTINUED) + tail[3:]
        kept = len(self._head) - len(decoder.getstate()[0]) + len(tail)
        return f"{head}\n[… {self.size - kept:,} bytes left out …]\n{tail.decode(errors='replace')}"


def cut(text: str, head: int, tail: int) -> str:
    """``text``, of which only so many bytes of its beginning and its end are left."""
    bounded = Bounded(head, tail)
    bounded.add(text.encode(errors="replace"))
    return bounded.text()
