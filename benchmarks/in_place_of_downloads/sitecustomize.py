"""Random images, in place of those that public scripts download: see ``public_scripts``.

Python imports this by itself in every process whose PYTHONPATH has this folder. The classes have
the signature, the sizes and the labels of torchvision's; the rows are the same in each process.
"""

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

ROWS = 2000  # of the training set; a fifth of it are in the test set
SIZES = {  # of an image, and the number of classes
    "MNIST": ((28, 28), 10),
    "FashionMNIST": ((28, 28), 10),
    "CIFAR10": ((32, 32, 3), 10),
    "CIFAR100": ((32, 32, 3), 100),
}


def dataset(size, num_classes) -> type:
    """A class as ``torchvision.datasets.CIFAR10`` of images of ``size``, random and cheap."""
    import numpy as np
    import torch
    from PIL import Image

    class RandomImages(torch.utils.data.Dataset):
        def __init__(self, root=None, train=True, transform=None, target_transform=None, **_):
            self.transform = transform
            self.target_transform = target_transform
            self.train = train
            number, chance = ROWS if train else ROWS // 5, np.random.default_rng(int(train))
            self.targets = chance.integers(num_classes, size=number).tolist()
            self.data = chance.integers(256, size=(number, *size), dtype=np.uint8)
            self.classes = [str(label) for label in range(num_classes)]

        def __len__(self):
            return len(self.targets)

        def __getitem__(self, i):
            image, label = Image.fromarray(self.data[i]), self.targets[i]
            if self.transform:
                image = self.transform(image)
            return image, self.target_transform(label) if self.target_transform else label

    return RandomImages


class Loader(importlib.abc.Loader):
    """That of ``torchvision.datasets``, and the classes above after it."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module) -> None:
        self.loader.exec_module(module)
        for name, (size, num_classes) in SIZES.items():
            made = dataset(size, num_classes)
            made.__module__, made.__qualname__ = module.__name__, name  # for pickle
            setattr(module, name, made)


class Finder(importlib.abc.MetaPathFinder):
    prepared = False

    def find_spec(self, name, path, target=None) -> ModuleSpec | None:
        if name == "torchvision" and not self.prepared:
            self.prepared = True
            import d2lmgpu.backend  # one for GPUs cannot be imported beside a PyTorch for CPUs

            d2lmgpu.backend._let_torchvision_import()
        if name != "torchvision.datasets":
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
            spec.loader = Loader(spec.loader)
            return spec
        finally:
            sys.meta_path.insert(0, self)


sys.meta_path.insert(0, Finder())
