"""Looks at the ranks from outside while they run, and says when they wait without end."""

import threading
import time

from d2lmgpu.process.hangs.causes import hang, rank_in_words
from d2lmgpu.process.hangs.log import LIMIT
from d2lmgpu.process.hangs.state import read

LOOK = 0.5  # seconds from one look to the next
QUIET = 3.0  # seconds without any progress from which on ranks that wait are judged
STILL = 0.2  # of a core: a process that uses less computes nothing


class Watcher(threading.Thread):
    """Reads the logs in ``folder`` and, once its ranks hang, calls ``then()``; ``found`` says why.

    A rank that computes or sleeps is waited for: each of them must wait for the others, or for a
    lock that nobody can release, or have ended, use no core, and run no other thread of the
    reader's; and a cause must be there.
    ``within``: the folder of the reader's files.
    """

    def __init__(self, folder, then, within=""):
        super().__init__(daemon=True, name="hang-watcher")
        self.folder, self.then, self.within = folder, then, within
        self.found, self._over = None, threading.Event()
        self._still = None  # seconds without a call or an update, and the ranks

    def run(self):
        before, since, used = None, time.monotonic(), {}
        steps, last = None, time.monotonic()
        while not self._over.wait(LOOK):
            states, now = read(self.folder), time.monotonic()
            if any(one.ended == LIMIT for one in states):
                return
            if steps != (steps := [one.steps for one in states]):
                last, self._still = now, None
            elif now - last >= QUIET:
                self._still = now - last, states
            progress = [one.progress for one in states]
            if progress != before:
                before, since = progress, now
                used = {one.path: one.beat.get("cpu", 0) for one in states}
            elif now - since >= QUIET and all(
                _idle(one, used[one.path], now - since) for one in states
            ):
                self.found = hang(states, self.within)
                if self.found:
                    self.then()
                    return

    def close(self):
        """Look no more."""
        self._over.set()
        if self.is_alive():
            self.join()

    def standstill(self):
        """Where the ranks were, in a sentence, if some of them waited when they were stopped and
        none had gone on for a while: perhaps for one that is slow. Else None."""
        if not self._still or not any(one.waits for one in self._still[1]):
            return None
        seconds, states = self._still
        ranks = "; ".join(rank_in_words(one, self.within) for one in states)
        return f"For {seconds:.0f} s, when it was stopped, no rank had gone on: {ranks}."

    def at_the_end(self, codes=()):
        """The ``Hang`` that was found or, as far as the ranks waited when they ended, why.

        codes: the exit code of each rank, None for one that was ended from here.
        """
        return self.found or hang(read(self.folder, codes), self.within)


def _idle(one, used, seconds):
    if one.ended:
        return True
    still = one.beat.get("cpu", 0) - used < STILL * seconds
    return (one.waits or one.stuck) and one.fresh and still and not one.beat["busy"]
