"""How much data and how many epochs a run of a chapter uses.

``D2LMGPU_PROFILE`` chooses: ``auto`` (``full`` with a GPU, else ``quick``), ``quick``, ``full``
(the recipe that Dive into Deep Learning published) or ``test`` (just enough to run every line).
``D2LMGPU_IMAGES=n`` caps the training images of any profile at n, and the test images at n/6:
calibration needs a few steps, not a result.
"""

import math
import os
from dataclasses import dataclass, replace

VARIABLE, CAP = "D2LMGPU_PROFILE", "D2LMGPU_IMAGES"


class ProfileError(ValueError):
    """``D2LMGPU_PROFILE`` names no profile, or ``D2LMGPU_IMAGES`` is no number of images."""


@dataclass(frozen=True)
class Profile:
    """Sizes of a run.

    Attributes
    ----------
    name : str
        'quick', 'full' or 'test'.
    num_train, num_test : int
        Images of Fashion-MNIST.
    lenet_epochs, resnet_epochs, mnist_epochs : int
    resnet_width : int
        Channels after the stem.
    he_start : bool
        Whether the initial weights follow He et al. (2015) instead of the published standard
        deviation of 0.01, which needs some 500 updates before the loss falls at all.
    accuracy_floor : float
        Test accuracy that the one-device run of every chapter must reach.

    References
    ----------
    He et al. (2015). Delving Deep into Rectifiers: Surpassing Human-Level Performance on ImageNet
    Classification. ICCV. arXiv 1502.01852.
    """

    name: str
    num_train: int
    num_test: int
    lenet_epochs: int
    resnet_epochs: int
    mnist_epochs: int
    resnet_width: int
    he_start: bool
    accuracy_floor: float

    def init_std(self, fan_in: int) -> float:
        """Standard deviation of the initial weights of a layer.

        Parameters
        ----------
        fan_in : int
            Inputs of the layer.

        Returns
        -------
        float
        """
        return math.sqrt(2 / fan_in) if self.he_start else 0.01

    def __str__(self) -> str:
        if self.name == "full":
            return "full profile: all 60,000 training and 10,000 test images, the published recipe."
        start = "He start" if self.he_start else "initial weights with σ = 0.01"
        return (
            f"{self.name} profile: {self.num_train:,} training and {self.num_test:,} test images; "
            f"epochs: LeNet {self.lenet_epochs}, ResNet-18 {self.resnet_epochs}, "
            f"MNIST CNN {self.mnist_epochs}; ResNet-18 at width {self.resnet_width}; {start}. "
            f"The published recipe is {VARIABLE}=full."
        )


PROFILES = {
    "quick": Profile("quick", 6000, 1000, 12, 5, 5, 8, True, 0.70),
    "full": Profile("full", 60000, 10000, 10, 10, 5, 64, False, 0.75),
    "test": Profile("test", 512, 128, 1, 1, 1, 8, True, 0.0),
}


def profile(gpus: int = 0) -> Profile:
    """The profile in force where a framework sees ``gpus`` GPUs; ProfileError if unknown."""
    name = os.environ.get(VARIABLE, "auto")
    if name == "auto":
        name = "full" if gpus else "quick"
    if name not in PROFILES:
        raise ProfileError(f"{VARIABLE}={name!r} is unknown. Allowed: auto, {', '.join(PROFILES)}.")
    chosen, cap = PROFILES[name], os.environ.get(CAP)
    if cap is None:
        return chosen
    if not cap.isdecimal() or int(cap) < 1:
        raise ProfileError(f"{CAP}={cap!r}: give a whole number of images from 1 up.")
    num_test = max(1, int(cap) // 6)
    return replace(
        chosen, num_train=min(chosen.num_train, int(cap)), num_test=min(chosen.num_test, num_test)
    )
