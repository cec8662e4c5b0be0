"""What one training run did."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median

from d2lmgpu.machine.checks import Need, is_real, is_whole
from d2lmgpu.machine.devices import RunError
from d2lmgpu.records import steady

need = Need(RunError)


@dataclass
class Run:
    """One training run, as ``train`` returns it.

    Parameters
    ----------
    num_gpus : int
        Devices that it was asked for.
    batch_size : int
        Global batch: examples of one update, over all devices.
    lr : float
    num_samples : int or None
        Training images that an epoch sees; None where that is not known.
    sharing : str or None
        How the devices shared time: what ``d2l.sharing`` says of them.
    accuracies : list of float
        Test accuracy after each epoch.
    seconds : list of float
        Training time of each epoch, in seconds.

    Raises
    ------
    RunError
        For numbers that are not finite, and for times below 0.
    """

    num_gpus: int
    batch_size: int
    lr: float
    num_samples: int | None
    sharing: str | None
    accuracies: list = field(default_factory=list)
    seconds: list = field(default_factory=list)

    def __post_init__(self):
        n = self.num_samples
        need(n is None or is_whole(n), "num_samples", n, "a whole number, or None if not known")
        for name, least in (("accuracies", -inf), ("seconds", 0)):
            values = getattr(self, name)
            right = isinstance(values, Sequence) and not isinstance(values, str)
            need(right, name, values, "a list with one number an epoch")
            for value in values:
                need(is_real(value, least), f"An entry of {name}", value, at_least(least))

    @property
    def accuracy(self) -> float | None:
        """Median test accuracy of the last three epochs, as single epochs of a short run jump."""
        return median(self.accuracies[-3:]) if self.accuracies else None

    @property
    def samples_per_second(self) -> float | None:
        """Training images a second, by the median epoch, as the first one warms up."""
        seconds = median(self.seconds) if self.seconds else 0
        return self.num_samples / seconds if self.num_samples and seconds else None

    @property
    def unsteady(self) -> str:
        """Why its times do not tell how fast it is, by their spread (see ``steady``); or ""."""
        return steady.of_epochs(self.seconds, self.sharing)

    def __str__(self):
        devices = counted(self.num_gpus, "device")
        if self.num_gpus != 1 and self.sharing:
            devices += f", {self.sharing}"
        accuracy, speed = "no test accuracy", "no samples/s"
        if self.accuracies:
            epochs = counted(len(self.accuracies), "epoch")
            accuracy = f"test accuracy {self.accuracy:.3f} after {epochs}"
        if self.samples_per_second is not None:
            speed = f"{self.samples_per_second:,.0f} samples/s"
            if self.sharing == "simulated":
                speed += " (says nothing about speedup: the devices take turns)"
        return f"{devices}, batch {self.batch_size}, lr {self.lr:g}: {accuracy}, {speed}"

    __repr__ = __str__


def at_least(least) -> str:
    """Which numbers are allowed, in words."""
    return "a finite number" + ("" if least == -inf else f" of at least {least:g}")


def counted(number, thing) -> str:
    """'1 device' or '2 devices'."""
    return f"{number} {thing}{'s' * (number != 1)}"
