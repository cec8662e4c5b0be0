"""Make d2lmgpu/data/fashion_mnist_subset.npz: the first 6,000 training and 1,000 test images.

    .venv/bin/python tools/make_subset.py [FILE]

The full files have to be on this machine (see d2lmgpu/data/datasets.py).
"""

import sys

import numpy as np

from d2lmgpu.data import datasets


def main(path) -> None:
    full = datasets.fashion_mnist()
    if full.standin:
        sys.exit("the subset is made from the full files, and they are not on this machine")
    arrays = {}
    for part, n in {"train": 6000, "test": 1000}.items():
        arrays[f"X_{part}"] = np.rint(getattr(full, f"X_{part}")[:n] * 255).astype(np.uint8)
        arrays[f"y_{part}"] = getattr(full, f"y_{part}")[:n].astype(np.uint8)
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else datasets.SUBSET)
