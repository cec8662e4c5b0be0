"""What is known of a run: while it goes on its curves, how far it is, how fast; then its end."""

from collections import deque
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from statistics import median

from d2lmgpu.process.step_parts import OF_A_LANE, OTHER
from d2lmgpu.records.compare import Trial

CHANCE = 0.2  # accuracy: of ten classes a guess is right one time in ten, with room for luck
FAR = 1.5  # times the first loss: what a small step never reaches
RECENT = 20  # events over which the present speed is taken: about a second
SPEED = "samples/s"


class Live:
    """Made from the events of one run.

    ``points`` maps each label to its points ``(x, epoch, seconds, y)``: what ``train`` drew it
    over, the epochs and the seconds that had passed since ``train`` was called, None where nobody
    knows. ``modelled`` maps some labels to a forecast; ``progress`` is the done share of the run
    (None where the number of epochs is not known), ``speed`` is in samples a second, as is the
    forecast ``modelled_speed``, ``num_samples`` the training images of an epoch. ``pace`` has
    ``(seconds, samples)`` of the timed steps of each event. ``lanes``, ``where`` and ``memory`` say
    what the devices do, see ``wire``.
    """

    def __init__(self, num_epochs=None, modelled_speed=None):
        self.num_epochs = num_epochs
        self.epoch = 0
        self.sharing = None
        self.modelled = {SPEED: modelled_speed} if modelled_speed else {}
        self.points = {}
        self.xlabel = "epoch"
        self.progress = None
        self.speed = None
        self.num_samples, self.epoch_ends = None, {}
        self.lanes, self.memory = [], None
        self._steps = 0
        self._seconds_in = {}
        self._total = 0.0
        self.elapsed = 0.0
        self._first = None
        self._speeds = {}
        self.pace = []
        self._called, self._done = None, None

    def take(self, event) -> None:
        """Take in one event of the run."""
        match event["event"]:
            case "started":
                self.sharing, self._called = event["sharing"], event.get("time")
            case "loss":
                self._add("train loss", event["x"], event["x"], event["loss"], event)
            case "point":
                self._add_points(event)
            case "batch":
                self._add_batch(event)

    @property
    def curves(self) -> dict:
        """``{label: (xs, ys)}``, over what ``train`` drew them."""
        return {
            label: ([point[0] for point in points], [point[3] for point in points])
            for label, points in self.points.items()
        }

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the run will need at its present pace, or None."""
        return self.elapsed * (1 / self.progress - 1) if self.progress else None

    @property
    def where(self) -> dict | None:
        """``{part: seconds a step}``: the mean over devices and timed steps; None without any.

        A part that could not be told apart is None, its time is in ``other``.
        """
        if not self._steps:
            return None
        parts = {part: self._seconds_in.get(part) for part in OF_A_LANE}
        rest = max(0.0, self._total - sum(self._seconds_in.values()))
        return {part: s and s / self._steps for part, s in (parts | {OTHER: rest}).items()}

    def diverged(self, accuracy=None) -> bool:
        """Whether a loss was not finite, or rose far above the first and ``accuracy`` is chance."""
        label = next((name for name in self.points if "loss" in name.lower()), None)
        losses = [y for *_, y in self.points.get(label, ()) if isinstance(y, Real)]
        if not all(map(isfinite, losses)):
            return True
        by_chance = accuracy is not None and accuracy <= CHANCE
        return by_chance and bool(losses) and max(losses) > FAR * losses[0]

    @property
    def median_speed(self) -> float | None:
        """Samples a second in the median epoch that was seen, or None."""
        speeds = [speed for speed in self._speeds.values() if speed]
        return median(speeds) if speeds else None

    def _add_points(self, event):
        self.xlabel = event.get("xlabel", "epoch")
        if self.num_epochs is None and "xlim" in event:
            self.num_epochs = event["xlim"][1]  # D2L's own convention: xlim=[1, num_epochs]
        for i, x, y in event["points"]:
            label = (event["legend"][i : i + 1] or [event.get("ylabel", f"curve {i + 1}")])[0]
            epoch = x if self.xlabel == "epoch" else self._done
            self._add(str(label), x, epoch, y, event)

    def _add_batch(self, event):
        epoch, moment = event["epoch"], (event["time"], event["done"])
        if epoch != self.epoch:
            self.epoch = epoch
            self._epoch_start = moment
            self._recent = deque(maxlen=RECENT)
        self._first = moment[0] if self._first is None else self._first
        self.elapsed, self.num_samples = moment[0] - self._first, event["of"]
        self._recent.append(moment)
        self._speeds[epoch] = pace(self._epoch_start, moment)
        self._done = done = epoch - 1 + event["done"] / event["of"]
        self.epoch_ends[epoch] = self._seconds(event)
        if speed := pace(self._recent[0], moment):
            self.speed = speed
            self._add(SPEED, done, done, speed, event)
        if self.num_epochs:
            self.progress = min(1.0, done / self.num_epochs)
        if steps := event.get("steps"):
            self._add_steps(steps)

    def _add_steps(self, steps):
        self._steps, self._total = self._steps + steps["number"], self._total + steps["total"]
        if steps["number"]:
            self.pace.append((steps["total"], steps["samples"]))
        for what, seconds in steps["seconds"].items():
            self._seconds_in[what] = self._seconds_in.get(what, 0.0) + seconds
        if steps["lanes"]:
            self.lanes = self._drawn(steps["lanes"])
        self.memory = steps["memory"] or self.memory

    def _drawn(self, spans):
        """One list a device of what it does; what no device does alone, all of them do."""
        devices = 1 + max((device for device, *_ in spans if device is not None), default=0)
        return [
            [
                {"what": what, "start": self._at(start), "end": self._at(end)}
                for doer, what, start, end in spans
                if doer in (None, device)
            ]
            for device in range(devices)
        ]

    def _add(self, label, x, epoch, y, event):
        self.points.setdefault(label, []).append((x, epoch, self._seconds(event), y))

    def _seconds(self, event):
        """Seconds from the call of ``train`` to ``event``; None where it has no time."""
        return self._at(event["time"]) if "time" in event else None

    def _at(self, time):
        """Seconds from the call of ``train``; None where that was not seen."""
        return None if self._called is None else round(time - self._called, 4)


def pace(start, end) -> float | None:
    """Samples a second between two ``(seconds, samples)``; None unless both have grown."""
    seconds, samples = end[0] - start[0], end[1] - start[1]
    return samples / seconds if seconds > 0 and samples > 0 else None


@dataclass
class LabRun:
    """One run of a lab: its number there, what was chosen for it, and what was seen of it.

    ``trial`` is None while it goes on.
    """

    id: int
    settings: dict
    live: Live
    trial: Trial | None = None
