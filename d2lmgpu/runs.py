"""What one training run did."""

from dataclasses import dataclass, field
from statistics import median


@dataclass
class Run:
    """One training run, as ``train`` returns it.

    ``accuracies`` (test accuracy) and ``seconds`` (training time) have one entry an epoch,
    ``num_samples`` is the number of training images an epoch sees, ``overlap`` says how the
    devices shared time (see ``devices.overlap``).
    """

    num_gpus: int
    batch_size: int
    lr: float
    num_samples: int
    overlap: str
    accuracies: list = field(default_factory=list)
    seconds: list = field(default_factory=list)

    @property
    def accuracy(self):
        """Median test accuracy of the last three epochs: single epochs of a short run jump."""
        return median(self.accuracies[-3:])

    @property
    def samples_per_second(self):
        """Training images a second, by the median epoch (the first one warms up)."""
        return self.num_samples / median(self.seconds)

    def __str__(self):
        devices = "1 device" if self.num_gpus == 1 else f"{self.num_gpus} devices, {self.overlap}"
        speed = f"{self.samples_per_second:,.0f} samples/s"
        if self.overlap == "simulated":
            speed += " (says nothing about speedup: the devices share cores)"
        epochs = f"{len(self.accuracies)} epoch" + "s" * (len(self.accuracies) != 1)
        return (
            f"{devices}, batch {self.batch_size}, lr {self.lr:g}: "
            f"test accuracy {self.accuracy:.3f} after {epochs}, {speed}"
        )

    __repr__ = __str__
