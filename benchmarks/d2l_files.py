"""Puts Fashion-MNIST where D2L's own loaders look for it, so that nothing is downloaded."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np

from d2lmgpu.data.datasets import fashion_mnist


def provide(folder) -> Path:
    """Write the data into ``folder``; where D2L, imported after this, must run to read them.

    d2l.torch reads ``../data`` (plain files), d2l.mxnet ``$MXNET_HOME/datasets`` (gzip files).
    """
    work = Path(folder, "work")
    plain = Path(folder, "data", "FashionMNIST", "raw")
    packed = Path(folder, "mxnet", "datasets", "fashion-mnist")
    for place in (work, plain, packed):
        place.mkdir(parents=True)
    data = fashion_mnist()
    for part, X, y in (("train", data.X_train, data.y_train), ("t10k", data.X_test, data.y_test)):
        images = struct.pack(">4i", 2051, len(X), 28, 28) + np.rint(X * 255).astype("u1").tobytes()
        labels = struct.pack(">2i", 2049, len(y)) + y.astype("u1").tobytes()
        for name, content in (("images-idx3", images), ("labels-idx1", labels)):
            Path(plain, f"{part}-{name}-ubyte").write_bytes(content)
            Path(packed, f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(content, 1))
    os.environ["MXNET_HOME"] = str(Path(folder, "mxnet"))
    return work
