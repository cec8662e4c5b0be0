"""Write the images that a page trains with: assets/training/images.js, a script of one string.

    .venv/bin/python tools/page_images.py [FILE]

They are the package's 6,000 + 1,000 images of Fashion-MNIST at 16 grey levels: all labels, a byte
each, then all images, two pixels a byte, the first one in the lower half; deflated, in base64. A
page that was opened from a disk may load a script, and neither fetch a file nor read a picture.
"""

import base64
import sys
import zlib
from pathlib import Path

import numpy as np

from d2lmgpu.data.datasets import SUBSET

IMAGES = Path(__file__).resolve().parent.parent / "assets" / "training" / "images.js"


def block() -> bytes:
    """The bytes that a device gets: labels, then pixels."""
    with np.load(SUBSET) as arrays:
        y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        X = np.concatenate([arrays["X_train"], arrays["X_test"]]).reshape(len(y), -1)
    grey = np.rint(X / 17).astype(np.uint8)
    return y.tobytes() + (grey[:, ::2] | grey[:, 1::2] << 4).tobytes()


def write(path) -> None:
    notice = (
        SUBSET.with_suffix(".LICENSE").read_text(encoding="utf-8")
        + "\nHere they are at 16 grey levels."
    )
    text = base64.b64encode(zlib.compress(block(), 9)).decode()
    path.write_text(f'/*\n{notice}\n*/\nglobalThis.TrainingImages =\n"{text}";\n', encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
