"""What is being run, for whoever waits: one line on stderr that counts the seconds."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 1.0  # seconds from one look at the clock to the next


class Progress:
    """Of a command that runs a script several times.

    asked: True also writes where stderr is no terminal, a line when a run begins and one when it
    ends; False writes nothing; None writes to a terminal only. expected: how many runs there are,
    if none has to be done again.
    """

    def __init__(self, asked=None, expected=1):
        self.live = sys.stderr.isatty()
        self.shown = self.live if asked is None else asked
        self.expected, self.number = expected, 0

    @contextmanager
    def run(self, what, most) -> Iterator[None]:
        """While this goes on, ``what`` is being run, for ``most`` seconds at the latest."""
        self.number += 1
        number = f"run {self.number} of {max(self.number, self.expected)}"
        start, over = time.monotonic(), threading.Event()

        def status():
            return f"{number}: {what}, {time.monotonic() - start:.0f} s of {most:.0f} at most"

        def count():
            while not over.wait(EVERY):
                self._write(status())

        if not self.shown:
            yield
            return
        self._write(status() if self.live else f"{number}: {what}")
        counting = threading.Thread(target=count, daemon=True, name="watch-progress")
        if self.live:
            counting.start()
        try:
            yield
        finally:
            over.set()
            if self.live:
                counting.join()
            self._write("" if self.live else status())

    def _write(self, words):
        """A line, at a terminal in place of the last one."""
        start, end = ("\r\033[K", "") if self.live else ("", "\n")
        print(f"{start}{words}", end=end, file=sys.stderr, flush=True)
