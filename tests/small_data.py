"""A data set of 30 + 10 images that takes Fashion-MNIST's place in tests, and an empty machine."""

import dataclasses
import gzip
import hashlib
import struct

import numpy as np

from d2lmgpu.data import datasets, files
from d2lmgpu.data.files import DATA_SETS, FILES

rng = np.random.default_rng(0)
X = {
    "train": rng.integers(0, 256, (30, 28, 28), np.uint8),
    "t10k": rng.integers(0, 256, (10, 28, 28), np.uint8),
}
y = {part: rng.integers(0, 10, len(X[part]), np.uint8) for part in X}
PLAIN = {}
for part in X:
    images = struct.pack(">4i", 0x803, len(X[part]), 28, 28) + X[part].tobytes()
    PLAIN[f"{part}-images-idx3-ubyte"] = images
    PLAIN[f"{part}-labels-idx1-ubyte"] = struct.pack(">2i", 0x801, len(X[part])) + y[part].tobytes()
ARCHIVES = {f"{file}.gz": gzip.compress(PLAIN[file]) for file in FILES}
# Where files are looked for, in this order -> that place on the empty machine
PLACES = {
    "the system's package": "system/fashion-mnist",
    "torchvision's folder": "work/data/FashionMNIST/raw",
    "d2l's folder": "data/FashionMNIST/raw",
    "MXNet's folder": "home/.mxnet/datasets/fashion-mnist",
    "the cache": "cache/fashion-mnist",
}


def known(mirrors):
    """Fashion-MNIST's entry, with the small files' checks and these mirrors."""
    checks = tuple((len(PLAIN[f]), hashlib.sha256(PLAIN[f]).hexdigest()) for f in FILES)
    return dataclasses.replace(DATA_SETS["fashion-mnist"], checks=checks, mirrors=mirrors)


def empty_machine(monkeypatch, folder):
    """No data anywhere, no setting, nothing in memory; home, cache and so on are in ``folder``."""
    for variable in ("D2LMGPU_DATA", "MXNET_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("D2LMGPU_CACHE", str(folder / "cache"))
    monkeypatch.setattr(files, "SYSTEM", folder / "system")
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    datasets._load.cache_clear()


def put(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def assert_small(data):
    """``found`` is the small data set, whole and exact."""
    assert data.standin is None and data.name == "fashion-mnist"
    for part, images, labels in (
        ("train", data.X_train, data.y_train),
        ("t10k", data.X_test, data.y_test),
    ):
        assert images.dtype == np.float32 and labels.dtype == np.int64
        assert images.shape == (len(X[part]), 1, 28, 28)
        np.testing.assert_array_equal(images[:, 0], X[part].astype(np.float32) / np.float32(255))
        np.testing.assert_array_equal(labels, y[part])
