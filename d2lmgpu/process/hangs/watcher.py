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
        steps, last, spent = None, time.monotonic(), {}
        while not self._over.wait(LOOK):
            states, now = read(self.folder), time.monotonic()
            if any(one.ended == LIMIT for one in states):
                return
            if steps != (steps := [one.steps for one in states]):
                last, self._still = now, None
                spent = {one.path: one.beat.get("cpu", 0) for one in states}
            elif now - last >= QUIET and len(states) > 1:
                waits = any(
                    one.waits and not one.ended and _computes_nothing(one, spent, now - last)
                    for one in states
                )
                self._still = (now - last, states) if waits else None
            progress = [one.progress for one in states]
            if progress != before:
                before, since = progress, now
                used = {one.path: one.beat.get("cpu", 0) for one in states}
            elif now - since >= QUIET and all(_idle(one, used, now - since) for one in states):
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
        seconds, states = self._still or (0, [])
        now = {one.path: one for one in read(self.folder)}
        if not states or any(_went_on(one, now.get(one.path)) for one in states):
            return None
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
    waits = (one.waits or one.stuck) and one.fresh and not one.beat["busy"]
    return waits and _computes_nothing(one, used, seconds)


def _computes_nothing(one, used, seconds):
    return one.beat.get("cpu", 0) - used[one.path] < STILL * seconds


def _went_on(before, after):
    """Whether a rank has done anything since but to be stopped."""
    if after is None:
        return True
    calls = before.beat.get("calls"), before.beat.get("updates")
    same = calls == (after.beat.get("calls"), after.beat.get("updates"))
    return not same or after.ended not in (before.ended, LIMIT)
