"""A watched run in numbers: what each rank did with a step, without what others took from it.

The time in which a thread was ready and had no core is left out: on a machine where other programs
run it is theirs, unless the ranks themselves have too few cores. What a rank waits for a peer in
the backward pass or in a collective is told apart from what it does itself. The rank that comes
last waits least, so the least wait of a step is the exchange itself.
"""

from collections import Counter
from dataclasses import dataclass
from statistics import mean, median

from d2lmgpu.process.step_parts import BACKWARD, EVALUATING, EXCHANGING, OTHER, WAITING
from d2lmgpu.watch.explain.messages import RankReport

MET = (BACKWARD, EXCHANGING)  # parts in which a rank waits for its peers
ASIDE = (OTHER, EVALUATING)
ISSUE = 8e-6  # seconds that issuing an operation takes, about
SMALL = 16 * 2**10  # bytes: a collective that carries no gradients


def own(step, parts=None, crowded=False) -> float:
    """Seconds that a rank itself needed for a step, or for some parts of it."""
    total = 0.0
    for part, (wall, cpu, delay) in step[2].items():
        if parts is None or part in parts:
            total += cpu if part in MET else max(cpu, wall - delay)
            total += delay if crowded else 0.0
    return total


def blocked(step) -> float:
    """Seconds that a rank waited for its peers in a step."""
    spent = [step[2].get(part, (0.0, 0.0, 0.0)) for part in MET]
    return sum(max(0.0, wall - cpu - delay) for wall, cpu, delay in spent)


@dataclass(frozen=True)
class Summary:
    """``ranks``: the reports of the observer, one a rank, each with the same number of steps."""

    ranks: list[RankReport]

    @property
    def k(self) -> int:
        return len(self.ranks)

    @property
    def steps(self) -> list[tuple]:
        """The steps, each a list with that of every rank."""
        return list(zip(*[rank["measured_steps"] for rank in self.ranks]))

    @property
    def in_threads(self) -> bool:
        """Whether the ranks are devices of one process, see ``devices``."""
        return bool(self.ranks[0].get("in_threads"))

    @property
    def crowded(self) -> bool:
        """Whether the ranks take the cores from each other: then queuing is their own doing."""
        cores = set().union(*[rank["cores"] or () for rank in self.ranks])
        return bool(cores) and self.ranks[0]["threads"] * self.k > len(cores)

    @property
    def exchange(self) -> float:
        """Seconds of a step in which all ranks wait at once: the exchange as far as it shows."""
        return median(min(map(blocked, step)) for step in self.steps) if self.k > 1 else 0.0

    @property
    def _busiest(self):
        """Of each step, the seconds of its slowest rank's own work."""
        crowded = self.crowded
        return [max(own(rank_step, None, crowded) for rank_step in step) for step in self.steps]

    @property
    def seconds(self) -> float:
        """A step: what its slowest rank does, what one rank does now and then, the exchange."""
        busiest = self._busiest
        return max(median(busiest), mean(busiest[1:-1] or busiest)) + self.exchange

    @property
    def drift(self) -> float:
        """How many times as long the slower half of the steps took, first or last, as the other."""
        busiest = self._busiest
        half = len(busiest) // 2
        first, last = median(busiest[:half]), median(busiest[half:])
        return max(first, last) / max(1e-9, min(first, last))

    def speedup(self, single) -> float | None:
        """Rows a second of this run over those of ``single``; None where rows are not seen."""
        if single is None or not single.rows or not self.rows:
            return None
        return (self.rows_like(single) / self.seconds) / (single.rows / single.seconds)

    def rows_like(self, single) -> float:
        """Rows of a step as ``single`` counts them.

        Where the batch is not an input's first dimension, a rank has as many "rows" as one device
        has, and fewer values.
        """
        if not single.rows:
            return self.rows
        rows = self.rows / self.k / single.rows
        values = self.values / self.k / max(1, single.values)
        return single.rows * self.k * values if rows > 0.9 and 0 < values < 0.75 else self.rows

    @property
    def queued(self) -> float:
        """The share of a step in which its thread had no core."""
        walls = [
            (end - start, sum(v[2] for v in parts.values()))
            for rank in self.ranks
            for start, end, parts in rank["measured_steps"]
        ]
        return sum(delay for _, delay in walls) / max(1e-9, sum(wall for wall, _ in walls))

    @property
    def rows(self) -> float:
        """Rows of a step, over all ranks."""
        return sum(rank["rows"] / rank["measured"] for rank in self.ranks)

    @property
    def values(self) -> float:
        """Values in them."""
        return sum(rank["elements"] / rank["measured"] for rank in self.ranks)

    @property
    def faults(self) -> float:
        """Pages of memory that the system had to give a rank in a step."""
        return sum(rank["faults"] / rank["measured"] for rank in self.ranks) / self.k

    def shares(self) -> dict:
        """{part: its share of the step}, the mean over ranks; with ``waiting``."""
        seconds_of, waits, crowded = Counter(), [], self.crowded
        for step in self.steps:
            least = min(map(blocked, step)) if self.k > 1 else 0.0
            for rank_step in step:
                for part in rank_step[2]:
                    seconds_of[part] += own(rank_step, (part,), crowded) / self.k
                waits.append(blocked(rank_step) - least)
        number = max(1, len(self.steps))
        shares = {part: seconds / number for part, seconds in seconds_of.items()}
        shares[EXCHANGING] = shares.get(EXCHANGING, 0.0) + self.exchange
        shares[WAITING] = median(waits) if waits else 0.0
        total = sum(shares.values()) or 1.0
        return {part: seconds / total for part, seconds in shares.items()}

    def part(self, names) -> list[float]:
        """Median seconds of a step that each rank itself needs for some parts."""
        return [median(own(step, names) for step in rank["measured_steps"]) for rank in self.ranks]

    def aside(self) -> list[float]:
        """Mean seconds of a step that each rank spends beside training."""
        return [mean(own(step, ASIDE) for step in rank["measured_steps"]) for rank in self.ranks]

    def line(self, *parts, rank=0) -> str | None:
        """The line at which a rank was seen most often in one of the parts."""
        return next(
            (line for name, line, _ in self.ranks[rank]["lines"] if name in parts and line), None
        )

    def calls(self) -> list[tuple]:
        """[(kind, line, calls a step, bytes a call, seconds a step)]: the rank that waits least.

        A rank also waits while a peer queues for a core; so seconds are a call's share of what the
        rank's steps took, times the step.
        """
        by_call, seconds = {}, self.seconds
        for rank in self.ranks:
            took = sum(
                wall - delay
                for _, _, parts in rank["measured_steps"]
                for wall, _, delay in parts.values()
            )
            scale = min(1.0, seconds * len(rank["measured_steps"]) / max(1e-9, took))
            for kind, line, number, size, spent, _ in rank["calls"]:
                by_call.setdefault((kind, line), []).append((scale * spent, number, size))
        steps = self.ranks[0]["measured"]
        return [
            (*key, min(sums)[1] / steps, min(sums)[2] / min(sums)[1], min(sums)[0] / steps)
            for key, sums in by_call.items()
        ]


def summary(watched) -> Summary | None:
    """The Summary of a ``watch.run.Watched``; None if too few steps were measured."""
    ranks = [report for report in watched.reports if report.get("measured")]
    if not ranks or min(rank["measured"] for rank in ranks) < 5:
        return None
    number = min(rank["measured"] for rank in ranks)
    return Summary([rank | {"measured_steps": rank["measured_steps"][:number]} for rank in ranks])


def faster(first, second) -> Summary | None:
    """Of two Summaries of the same run, or None, that with the shorter step."""
    return min(filter(None, (first, second)), key=lambda run: run.seconds)
