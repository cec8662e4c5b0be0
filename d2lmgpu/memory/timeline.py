"""Memory over the time of some steps: which storages are there at each moment, and what for."""

from collections import defaultdict
from dataclasses import dataclass, field

PARTS = (
    "parameters",
    "gradients",
    "buckets",
    "optimizer state",
    "activations",
    "batch",
    "temporary",
)


@dataclass(frozen=True)
class Event:
    """A storage is taken, or given back."""

    number: int  # of the storage, each its own
    size: int  # bytes
    taken: bool


@dataclass
class Timeline:
    """All events in their order, and what each storage turned out to be for."""

    events: list[Event] = field(default_factory=list)
    part: dict[int, str] = field(default_factory=dict)  # number of a storage -> one of `PARTS`
    line: dict[int, str | None] = field(default_factory=dict)  # and the reader's that has taken it
    updates: list[range] = field(default_factory=list)  # the events of each step of the optimizer

    def totals(self) -> list[int]:
        """The bytes in use after each event."""
        total, totals = 0, []
        for event in self.events:
            total += event.size if event.taken else -event.size
            totals.append(total)
        return totals

    def peak(self) -> int:
        """The event after which most is in use."""
        totals = self.totals()
        return max(range(len(totals)), key=totals.__getitem__)

    def parts(self, moment) -> dict[str, int]:
        """The bytes of each part after the event ``moment``."""
        sizes = defaultdict(int)
        for event in self.events[: moment + 1]:
            part = self.part.get(event.number, "temporary")
            sizes[part] += event.size if event.taken else -event.size
        return {part: sizes[part] for part in PARTS}
