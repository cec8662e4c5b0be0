"""Looks at the ranks from outside while they run, and says when they wait without end."""

import threading
import time

from d2lmgpu.process.hangs.causes import Hang, hang, rank_in_words
from d2lmgpu.process.hangs.log import LIMIT
from d2lmgpu.process.hangs.state import read

LOOK = 0.5  # seconds from one look to the next
QUIET = 3.0  # seconds without any progress from which on ranks that wait are judged
STILL = 0.2  # of a core: a process that uses, or is kept from, less computes nothing


class Watcher(threading.Thread):
    """Reads the logs in ``folder`` and, once its ranks hang, calls ``then()``; ``hang`` says why.

    A rank that computes or sleeps is waited for: each of them must wait for the others, or for a
    lock that nobody can release, or have ended, use no core, and run no other thread of the
    reader's; and a cause must be there.
    ``within``: the folder of the reader's files. As a context manager it looks until its end.
    """

    def __init__(self, folder, then, within=""):
        super().__init__(daemon=True, name="hang-watcher")
        self.folder = folder
        self.then = then
        self.within = within
        self.hang, self._over = None, threading.Event()
        self._still = None  # seconds without a call or an update, and the ranks

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.close()

    def run(self) -> None:
        steps, progress = _Unchanged("steps"), _Unchanged("progress")
        while not self._over.wait(LOOK):
            states, now = read(self.folder), time.monotonic()
            if any(state.ended == LIMIT for state in states):
                return
            steps.look(states, now)
            progress.look(states, now)
            waits = (
                state.waits and not state.ended and steps.computes_nothing(state)
                for state in states
            )
            still = steps.seconds >= QUIET and len(states) > 1 and any(waits)
            self._still = (steps.seconds, states) if still else None
            if progress.seconds >= QUIET and all(_idle(state, progress) for state in states):
                self.hang = hang(states, self.within)
                if self.hang:
                    self.then()
                    return

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        if self.is_alive():
            self.join()

    def standstill(self) -> str | None:
        """Where the ranks were, in a sentence, if some of them waited when they were stopped and
        none had gone on for a while: perhaps for one that is slow. Else None."""
        seconds, states = self._still or (0, [])
        now = {state.path: state for state in read(self.folder)}
        if not states or any(_went_on(state, now.get(state.path)) for state in states):
            return None
        ranks = "; ".join(rank_in_words(state, self.within) for state in states)
        return f"For {seconds:.0f} s, when it was stopped, no rank had gone on: {ranks}."

    def at_the_end(self, codes=()) -> Hang | None:
        """The ``Hang`` that was found or, as far as the ranks waited when they ended, why.

        codes: the exit code of each rank, None for one that was ended from here.
        """
        return self.hang or hang(read(self.folder, codes), self.within)


class _Unchanged:
    """For how many ``seconds`` the attribute ``name`` of all ranks has been what it is."""

    def __init__(self, name):
        self.name = name
        self.values = None
        self.since = 0.0
        self.seconds = 0.0
        self.cpu = {}

    def look(self, states, now):
        """``states``: of the ranks at the time ``now``, in seconds."""
        values = [getattr(state, self.name) for state in states]
        if values != self.values:
            self.values, self.since = values, now
            self.cpu = {state.path: state.beat.get("cpu", 0) for state in states}
        self.seconds = now - self.since

    def computes_nothing(self, state):
        """Whether a rank has used next to no core since, and was not kept from one."""
        return state.beat.get("cpu", 0) - self.cpu[state.path] < STILL * self.seconds


def _idle(state, progress):
    if state.ended:
        return True
    waits = (state.waits or state.stuck) and state.fresh and not state.beat["busy"]
    return waits and progress.computes_nothing(state)


def _went_on(before, after):
    """Whether a rank has done anything since but to be stopped."""
    if after is None:
        return True
    calls = before.beat.get("calls"), before.beat.get("updates")
    same = calls == (after.beat.get("calls"), after.beat.get("updates"))
    return not same or after.ended not in (before.ended, LIMIT)
