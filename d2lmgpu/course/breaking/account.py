"""What a training did, and what a harm has cost it: from the lines that its ranks wrote down.

Beside the script's own lines there are those of ``Training.look``: a worker, or a host (then the
pid is None), ``appears`` and ``goes``, a host also by its link. All times are seconds since the
first line.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from d2lmgpu.course.breaking.messages import Picture

QUIET = 1.0  # seconds between two updates of a rank that still count as training
BEFORE, AFTER = 3, 3  # seconds that a picture shows before a harm and after it


@dataclass
class Life:
    """A process that trains, from its start to its end; None for what has not been."""

    host: str
    appears: float
    goes: float | None = None
    rank: int = 0
    ranks: int = 0
    updates: list = field(default_factory=list)  # [time, its number]
    saves: list = field(default_factory=list)  # [from, to]


@dataclass
class Harm:
    """A button that was pressed, and what was predicted before: see ``forecast.cost``."""

    name: str
    at: float
    predicted: dict
    ended: float | None = None  # when the hand was off again


class Account:
    def __init__(self, num_train):
        self.all_images = set(range(num_train))  # those of each epoch
        self.start, self.now = None, 0.0
        self.lives, self.hosts = {}, {}  # (host, pid) -> Life; host -> [from, to] of being away
        self.saved = 0  # updates in the newest checkpoint
        self.epochs = defaultdict(lambda: defaultdict(list))  # epoch -> update -> its lines

    def add(self, line) -> None:
        """Take a line into account."""
        self.start = line["time"] if self.start is None else self.start
        at, what, host = line["time"] - self.start, line["what"], line["host"]
        if line["pid"] is None:
            away = self.hosts.setdefault(host, [])
            if what == "goes":
                away.append([at, None])
            elif away:
                away[-1][1] = at
            return
        life = self.lives.setdefault((host, line["pid"]), Life(host, at))
        life.appears = min(at, life.appears)
        if what == "goes":
            life.goes = at
        elif what == "begins":
            life.rank, life.ranks = line["rank"], line["world_size"]
        elif what == "step":
            life.updates.append((at, line["step"]))
            self.epochs[line["epoch"]][line["step"]].append(line | {"at": at})
        elif what == "saved":
            self.saved = line["step"]
            life.saves.append((life.updates[-1][0], at))

    def newest(self) -> list:
        """The lives of the ranks that train together at last."""
        trains = [life for life in self.lives.values() if life.updates and life.goes is None]
        return [life for life in trains if life.ranks == len(trains)]

    def update_seconds(self) -> float | None:
        """The median of the last updates; None before there are some."""
        for life in self.newest():
            times = [at for at, _ in life.updates[-21:]]
            if len(times) > 5:
                return median(b - a for a, b in pairwise(times))
        return None

    def lag(self) -> int:
        """Updates since the newest checkpoint."""
        return max((life.updates[-1][1] + 1 - self.saved for life in self.newest()), default=0)

    def starts(self) -> tuple:
        """At the start: seconds until a worker was there, and those of one to its first update."""
        lives = [life for life in self.lives.values() if life.updates]
        first = min(lives, key=lambda life: life.updates[0][0])
        there = min(life.appears for life in self.lives.values())
        return there, first.updates[0][0] - first.appears

    def spans(self, host, begin, end) -> list[list]:
        """[what, from, to] of everything on ``host`` in this time, in its order."""
        spans, last = [], None
        for life in sorted(self._of(host), key=lambda life: life.appears):
            if last is not None:
                spans += self._meets(host, last, life.appears)
            last = life.goes
            until = self.now if life.goes is None else life.goes
            if not life.updates:
                spans.append(("starts Python", life.appears, until))
                continue
            times = [at for at, _ in life.updates]
            spans.append(("starts Python", life.appears, times[0]))
            since = times[0]
            for moment, next in zip(times, [*times[1:], max(until, times[-1])]):
                if next - moment > QUIET or (next == until and life.goes is not None):
                    spans += [("trains", since, moment), ("silent", moment, next)]
                    since = next
            if since < until:
                spans.append(("trains", since, until))
            spans += [("saves", *save) for save in life.saves]
        if last is not None:
            spans += self._meets(host, last, self.now)
        within = [(what, max(a, begin), min(b, end)) for what, a, b in spans]
        return [[what, round(a, 3), round(b, 3)] for what, a, b in within if b > a]

    def _meets(self, host, begin, end):
        """The time without a worker there: it meets the others, or is away."""
        for gone, back in self.hosts[host]:
            until = min(end, self.now if back is None else back)
            if gone < end and until > begin:
                yield "meets", begin, gone
                yield "is away", max(begin, gone), until
                begin = until
        yield "meets", begin, end

    def _of(self, host):
        return [life for life in self.lives.values() if life.host == host]

    def picture(self, begin, end) -> Picture:
        """The lanes of all hosts, in seconds since ``begin``."""
        lanes = {
            host: [
                [what, round(a - begin, 3), round(b - begin, 3)]
                for what, a, b in self.spans(host, begin, end)
            ]
            for host in self.hosts
        }
        return {"seconds": end - begin, "lanes": lanes}

    def again(self, harm) -> list:
        """The lives that trained on after ``harm``: as many ranks as were predicted; or []."""
        ranks = harm.predicted["ranks"]
        new = [
            life
            for life in self.lives.values()
            if life.updates and life.updates[0][0] > harm.at and life.appears > harm.at
        ]
        together = [life for life in new if life.ranks == ranks]
        return together if len({life.rank for life in together}) == ranks else []

    def cost(self, harm) -> dict:
        """{name: seconds or number} of what ``harm`` cost, as far as it is known."""
        if not harm.predicted["restart"]:
            return self._cost_of_none(harm)
        if not (new := self.again(harm)):
            return {}
        hosts, begin = {life.host for life in new}, min(life.updates[0] for life in new)
        old = [
            life
            for life in self.lives.values()
            if life.appears <= harm.at and life.updates and life not in new
        ]
        gone = [life.goes for life in old if life.host in hosts and life.goes is not None]
        noticed, met = max(gone, default=harm.at), max(life.appears for life in new)
        before = [number for life in old for at, number in life.updates if at < begin[0]]
        reached, first = max(before) + 1, begin[1]
        costs = {
            "notice": noticed - harm.at,
            "meet": met - noticed,
            "start": begin[0] - met,
            "updates": reached - first,
        }
        caught = [at for life in new for at, number in life.updates if number >= reached - 1]
        if caught or reached == first:
            costs["redo"] = min(caught) - begin[0] if reached > first else 0.0
            costs["together"] = begin[0] + costs["redo"] - harm.at
            costs |= self._images(harm, begin[0], first, reached)
        return costs

    def _cost_of_none(self, harm):
        """Of a harm after which nothing is started again: how long an update took, at most."""
        if harm.ended is None:
            return {}
        times = sorted(at for life in self.newest() for at, _ in life.updates)
        before = [at for at in times if at <= harm.at][-1:]
        life = next(iter(self.newest()), None)
        after = [at for at, _ in life.updates if at > harm.ended] if life else []
        if len(after) < 6:
            return {}
        during = before + [at for at in times if at > harm.at]
        return {
            "pause": max(b - a for a, b in pairwise(during)),
            "update": median(b - a for a, b in pairwise(after[:7])),
            "updates": 0,
        } | self._images(harm, after[0], 0, 0)

    def _images(self, harm, again, first, reached):
        """Images computed again; and lost and counted twice in the epoch, once it has ended."""
        lines = [
            line
            for steps in self.epochs.values()
            for step, lines in steps.items()
            if first <= step < reached
            for line in lines
            if line["at"] >= again
        ]
        images = {"images": sum(len(line["images"]) for line in lines)}
        epoch = max(
            e
            for e, steps in self.epochs.items()
            if any(line["at"] <= harm.at for lines in steps.values() for line in lines)
        )
        if epoch + 1 in self.epochs:
            counted = counted_images(self.epochs[epoch])
            images |= {
                "lost": len(self.all_images - set(counted)),
                "twice": len(counted) - len(set(counted)),
            }
        return images

    def forget(self) -> None:
        """Drop the images of epochs that no harm will ask for."""
        for epoch in sorted(self.epochs)[:-4]:
            del self.epochs[epoch]


def counted_images(steps) -> list:
    """The images of what counts of an epoch: of each update the last time that it was made."""
    images = []
    for lines in steps.values():
        last = sorted(lines, key=lambda line: line["at"])
        images += [image for line in last[-last[-1]["world_size"] :] for image in line["images"]]
    return images
