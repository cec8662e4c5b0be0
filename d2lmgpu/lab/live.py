"""What is known of a run while it goes on: its curves, how far it is, how fast."""

from collections import deque
from statistics import median

RECENT = 20  # events over which the present speed is taken: about a second
SPEED = "samples/s"


class Live:
    """Made from the events of one run.

    ``curves`` maps each label to its points ``(xs, ys)``, ``modelled`` some labels to a forecast;
    ``progress`` is the done share of the run (None where the number of epochs is not known),
    ``speed`` is in samples a second, as is the forecast ``modelled_speed``.
    """

    def __init__(self, num_epochs=None, modelled_speed=None):
        self.num_epochs, self.epoch, self.sharing = num_epochs, 0, None
        self.modelled = {SPEED: modelled_speed} if modelled_speed else {}
        self.curves, self.xlabel, self.progress, self.speed = {}, "epoch", None, None
        self.elapsed, self._first, self._speeds = 0.0, None, {}

    def take(self, event):
        """Take in one event of the run."""
        match event["event"]:
            case "started":
                self.sharing = event["sharing"]
            case "loss":
                self._add("train loss", event["x"], event["loss"])
            case "point":
                self._add_points(event)
            case "batch":
                self._add_batch(event)

    @property
    def seconds_left(self):
        """Seconds that the run will need at its present pace, or None."""
        return self.elapsed * (1 / self.progress - 1) if self.progress else None

    @property
    def median_speed(self):
        """Samples a second in the median epoch that was seen, or None."""
        speeds = [speed for speed in self._speeds.values() if speed]
        return median(speeds) if speeds else None

    def _add_points(self, event):
        self.xlabel = event.get("xlabel", "epoch")
        if self.num_epochs is None and "xlim" in event:
            self.num_epochs = event["xlim"][1]  # D2L's own convention: xlim=[1, num_epochs]
        for i, x, y in event["points"]:
            label = (event["legend"][i : i + 1] or [event.get("ylabel", f"curve {i + 1}")])[0]
            self._add(str(label), x, y)

    def _add_batch(self, event):
        epoch, here = event["epoch"], (event["time"], event["done"])
        if epoch != self.epoch:
            self.epoch, self._epoch_start, self._recent = epoch, here, deque(maxlen=RECENT)
        self._first = here[0] if self._first is None else self._first
        self.elapsed = here[0] - self._first
        self._recent.append(here)
        self._speeds[epoch] = pace(self._epoch_start, here)
        done = epoch - 1 + event["done"] / event["of"]
        if speed := pace(self._recent[0], here):
            self.speed = speed
            self._add(SPEED, done, speed)
        if self.num_epochs:
            self.progress = min(1.0, done / self.num_epochs)

    def _add(self, label, x, y):
        xs, ys = self.curves.setdefault(label, ([], []))
        xs.append(x)
        ys.append(y)


def pace(start, end):
    """Samples a second between two ``(seconds, samples)``; None unless both have grown."""
    seconds, samples = end[0] - start[0], end[1] - start[1]
    return samples / seconds if seconds > 0 and samples > 0 else None
