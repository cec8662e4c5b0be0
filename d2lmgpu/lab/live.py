"""What is known of a run while it goes on: its curves, how far it is, how fast."""

from collections import deque
from statistics import median

RECENT = 20  # events over which the present speed is taken: about a second
SPEED = "samples/s"


class Live:
    """Made from the events of one run; see ``hear``.

    ``curves`` maps each label to its points ``(xs, ys)``, ``modelled`` those labels for which there
    is a forecast to it; ``progress`` is the done share of the run (None where the number of epochs
    is not known), ``speed`` is in samples a second, as is the forecast ``modelled_speed``.
    """

    def __init__(self, num_epochs=None, modelled_speed=None):
        self.num_epochs, self.epoch, self.overlap = num_epochs, 0, None
        self.modelled = {SPEED: modelled_speed} if modelled_speed else {}
        self.curves, self.xlabel, self.progress, self.speed = {}, "epoch", None, None
        self.elapsed, self._first, self._speeds = 0.0, None, {}

    def hear(self, event):
        """Take in one event of the run."""
        match event["event"]:
            case "started":
                self.overlap = event["overlap"]
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
        epoch, done, now = event["epoch"], event["done"], event["time"]
        if epoch != self.epoch:
            self.epoch, self._epoch_start, self._recent = epoch, (now, done), deque(maxlen=RECENT)
        self._first = now if self._first is None else self._first
        self.elapsed = now - self._first
        self._recent.append((now, done))
        self._speeds[epoch] = pace(self._epoch_start, (now, done))
        if speed := pace(self._recent[0], (now, done)):
            self.speed = speed
            self._add(SPEED, epoch - 1 + done / event["of"], speed)
        if self.num_epochs:
            self.progress = min(1.0, (epoch - 1 + done / event["of"]) / self.num_epochs)

    def _add(self, label, x, y):
        xs, ys = self.curves.setdefault(label, ([], []))
        xs.append(x)
        ys.append(y)


def pace(start, end):
    """Samples a second between two ``(seconds, samples)``; None if no time has passed."""
    return (end[1] - start[1]) / (end[0] - start[0]) if end[0] > start[0] else None
