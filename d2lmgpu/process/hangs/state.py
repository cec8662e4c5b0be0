"""What a rank was doing, as its file says: see ``log``."""

import contextlib
import json
import linecache
import re
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from d2lmgpu.process.errors import PEER_LOST
from d2lmgpu.process.hangs.log import CALLS, FIRST, PLACE

LOCK = re.compile(r"\.acquire\(|^with [\w.]+:")  # what takes a lock: a line of the reader's
FRESH = 2.0  # seconds: a thread that looks five times a second has looked
# gloo's words where a process has waited, or its peer had another collective or has gone.
CONSEQUENCE = re.compile(f"{PEER_LOST.pattern}|[Tt]imed out|op.preamble|already (closed|aborted)")

POSTED = ("isend", "irecv")


@dataclass(frozen=True)
class Call:
    """The ``count``-th call of a rank: of a collective, which has a ``number`` from 1 on in its
    ``group``, or None for a message to or from ``peer``."""

    count: int
    number: int | None
    updates: int
    group: str
    kind: str
    public: str | None  # PyTorch's function that the reader has called
    shapes: list
    places: list  # of the reader's, from the inside out: file, line, function
    backward: bool
    peer: int | None

    @property
    def place(self) -> tuple | None:
        return self.places[0] if self.places else None

    @property
    def name(self) -> str:
        """The function that was called, else PyTorch's operator."""
        return self.public or self.kind


@dataclass(frozen=True)
class State:
    """A rank, by its file: ``head`` and ``beat`` are the first two of a ``Log``."""

    path: Path
    head: dict
    beat: dict

    @cached_property
    def calls(self) -> list[Call]:
        """Its last collectives, the newest one last."""
        lines = filter(None, _lines(self.path, FIRST, CALLS))
        return sorted((Call(*line) for line in lines), key=lambda call: call.count)

    @property
    def rank(self) -> int:
        return self.head["rank"]

    @property
    def ended(self) -> str | None:
        return self.head["ended"]

    @property
    def lost(self) -> bool:
        """Whether it raised because another rank was not there."""
        return self.ended == "raised" and bool(CONSEQUENCE.search(self.head["text"]))

    @property
    def raised(self) -> bool:
        """Whether it raised for a reason of its own."""
        return self.ended == "raised" and not self.lost

    @property
    def fresh(self) -> bool:
        return time.monotonic() - self.beat.get("at", 0) < FRESH

    @property
    def waits(self) -> bool:
        """Whether it waits for others, or has when it ended."""
        if self.ended:
            return self.lost
        return self.beat.get("doing") == "waits"

    @property
    def stuck(self) -> str | None:
        """Of a rank that waits, and not for others, for what nobody can bring: "lock", "worker".

        A lock is waited for in C: the line must say so, as a library may wait there for a disk.
        """
        kind = None if self.ended else self.beat.get("stuck")
        if kind == "lock" and self.beat["doing"] != "lock":
            line = linecache.getline(*self.place[:2]).strip() if self.place else ""
            return kind if LOCK.search(line) else None
        return kind

    @property
    def _seen(self):
        """Whether its thread was looked at since its last collective began: a crash is sudden."""
        return not self.calls or self.beat.get("calls") == self.calls[-1].count

    @property
    def place(self) -> tuple | None:
        """(file, line, function) of the reader's where it is, or was at its end."""
        place = self.head.get("place") if self.ended == "raised" else None
        place = place or (self.beat.get("place") if self._seen else None)
        return place or (self.calls[-1].place if self.calls else None)

    @property
    def backward(self) -> bool:
        """Whether it waits in a backward pass."""
        if self.ended == "raised":
            return self.head["backward"]
        if not self._seen:
            return bool(self.calls) and self.calls[-1].backward
        return bool(self.beat.get("backward"))

    @property
    def updates(self) -> int:
        """How many it has made."""
        newest = self.calls[-1].updates if self.calls else 0
        return max(self.beat.get("updates", 0), self.head.get("updates", 0), newest)

    @property
    def current(self) -> Call | None:
        """The collective in which it is: the last that it called, if it has not left its line.

        A message that was posted, by ``isend`` or ``irecv``, is waited for in another line.
        """
        if not self.calls:
            return None
        last = self.calls[-1]
        posted = self.waits and last.name in POSTED
        return last if self.backward or posted or last.place == self.place else None

    @property
    def steps(self) -> tuple:
        """What changes with each call and each update."""
        return self.path, self.ended, self.beat.get("calls"), self.beat.get("updates")

    @property
    def progress(self) -> tuple:
        """What changes as long as it goes on."""
        return *self.steps, self.beat.get("place")


def read(folder, codes=()) -> list[State]:
    """The ``State`` of each rank whose file is in ``folder``, by rank.

    codes: of each rank the exit code as Python has it, once it is known; a rank that a signal has
    ended could not say so. A process that starts those of the training is none.
    """
    states = [*filter(None, map(_state, Path(folder).glob("hang-*")))]
    joined = {state.rank: state for state in states if state.head["joined"]}
    worlds = {state.head["world"] for state in joined.values()}
    early = {state.rank: state for state in states if not joined or state.head["world"] in worlds}
    ranks = early | joined
    for rank, code in enumerate(codes):
        if code is not None and code < 0 and rank in ranks and not ranks[rank].ended:
            ended = {"ended": "killed", "text": f"signal {-code}"}
            ranks[rank] = replace(ranks[rank], head=ranks[rank].head | ended)
    return [state for _, state in sorted(ranks.items())]


def _state(path):
    head, beat = _lines(path, 0, FIRST)
    return head and State(path, head, beat or {})


def _lines(path, first, number):
    """So many lines of a file, from the ``first`` on; None for one that is not written yet."""
    data = b""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        file.seek(first * PLACE)
        data = file.read(number * PLACE)
    values = []
    for place in range(number):
        line = data[place * PLACE : (place + 1) * PLACE].partition(b"\0")[0]
        values.append(None)
        with contextlib.suppress(ValueError):  # it is being written
            values[-1] = json.loads(line) if line else None
    return values
