"""Fashion-MNIST and MNIST as NumPy arrays: found on this machine, else fetched, else stood in for.

Where they are looked for, and how they are checked, is in ``files``. Where they cannot be had,
smaller data stands in for them, and a line on standard error says so, once a machine.
"""

import gzip
import os
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from d2lmgpu.data.download import DownloadError
from d2lmgpu.data.files import DATA_SETS, FILES, DataError, fetch, locate, read
from d2lmgpu.machine.atomic_write import save
from d2lmgpu.machine.cache import cache
from d2lmgpu.machine.checks import is_whole

SUBSET = Path(__file__).with_name("fashion_mnist_subset.npz")
STANDIN = {
    "fashion-mnist": "embedded subset: 6,000 + 1,000 real Fashion-MNIST images",
    "mnist": "scikit-learn's handwritten digits scaled to 28x28 (1,500 + 297 images): not MNIST",
}
AGAIN = 600  # seconds until mirrors that did not answer are asked again: each process would wait


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels for training and test.

    Attributes
    ----------
    name : str
    X_train : numpy.ndarray, (n, 1, 28, 28), float32
        Images, in [0, 1].
    y_train : numpy.ndarray, (n,), int64
        Labels.
    X_test, y_test : numpy.ndarray
        The same for the test.
    source : str
        Where they were found, in words.
    standin : str or None
        None, or the sentence that has to be shown beside results because these are not the full
        data of that ``name``.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str
    standin: str | None

    def save(self, folder) -> None:
        """Write the images as the four .gz files in which such data sets are published.

        Parameters
        ----------
        folder : str or Path
            Where they go; it is made if it is not there.

        Raises
        ------
        OSError
            If a file cannot be written.
        """
        contents = []
        for X, y in ((self.X_train, self.y_train), (self.X_test, self.y_test)):
            sizes = [len(y), *X.shape[2:]]  # idx files open with a number for their kind, and these
            pixels, labels = np.rint(255 * X).astype(np.uint8), y.astype(np.uint8)
            contents += [struct.pack(">4i", 2051, *sizes) + pixels.tobytes()]
            contents += [struct.pack(">2i", 2049, len(y)) + labels.tobytes()]
        for name, content in zip(FILES, contents, strict=True):
            save(Path(folder, f"{name}.gz"), gzip.compress(content, 1))


def fashion_mnist(num_train: int | None = None, num_test: int | None = None) -> Dataset:
    """Fashion-MNIST: its first images.

    Where the full files cannot be had, the first 6,000 training and 1,000 test images stand in:
    the same arrays as from the full files, for whoever asks for no more than that.

    Parameters
    ----------
    num_train, num_test : int, optional
        How many images; all that there are without it.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        For a wrong or missing file, and for more images than there are.

    References
    ----------
    Xiao, Rasul and Vollgraf (2017). Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
    Learning Algorithms. arXiv 1708.07747.
    """
    return _dataset("fashion-mnist", num_train, num_test)


def mnist(num_train: int | None = None, num_test: int | None = None) -> Dataset:
    """MNIST (LeCun, Cortes and Burges): its first images.

    Where it cannot be had, 1,500 + 297 handwritten digits of scikit-learn stand in for it.

    Parameters
    ----------
    num_train, num_test : int, optional
        How many images; all that there are without it.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        As ``fashion_mnist`` does, and without scikit-learn where that is needed.
    """
    return _dataset("mnist", num_train, num_test)


def describe(name: str) -> str:
    """Where a data set is, or would come from; no file is opened.

    Parameters
    ----------
    name : str
        "fashion-mnist" or "mnist".

    Returns
    -------
    str
        A sentence.

    Raises
    ------
    DataError
        For another name, and where ``D2LMGPU_DATA`` lacks a file.
    """
    if not isinstance(name, str) or name not in DATA_SETS:
        raise DataError(f"There is no data set {name!r}; choose from {', '.join(DATA_SETS)}.")
    data_set = DATA_SETS[name]
    if place := locate(data_set, os.environ.get("D2LMGPU_DATA"), cache()):
        return f"{data_set.title}: {place[0]}"
    return (
        f"{data_set.title}: not on this machine. The first use downloads it to {cache() / name}; "
        f"without a network, this stands in for it: {STANDIN[name]}"
    )


def _dataset(name, num_train, num_test):
    arrays, source, standin = _load(name, os.environ.get("D2LMGPU_DATA"), cache())
    images = []
    for part, number, X, y in (("train", num_train, *arrays[:2]), ("test", num_test, *arrays[2:])):
        if number is not None and not is_whole(number, 1, len(y)):
            why = f" ({standin}). {DATA_SETS[name].how_to_get}" if standin else "."
            raise DataError(
                f"num_{part}={number!r} is not possible: give a whole number from 1 to {len(y):,}, "
                f"or None for all the images there are{why}"
            )
        images.append(np.divide(X[:number], 255, dtype=np.float32))
        images.append(y[:number].astype(np.int64))
    return Dataset(name, *images, source, standin)


# In memory as bytes; the arguments are there so that a changed setting is noticed.
@lru_cache
def _load(name, setting, cache_folder):
    """``((X_train, y_train, X_test, y_test), source, standin)``, all arrays uint8."""
    data_set = DATA_SETS[name]
    try:
        if place := locate(data_set, setting, cache_folder):
            source, paths = place
            contents = [read(data_set, i, path) for i, path in enumerate(paths)]
        elif _was_just_asked(note := cache_folder / f"{name}-was-not-downloaded"):
            return _standin(name)
        else:
            source, contents = fetch(data_set, cache_folder / name)
    except DownloadError as error:
        standin = _standin(name)
        if not os.path.exists(note):
            print(
                f"{data_set.title} is not on this machine and could not be downloaded ({error}). "
                f"Used instead: {STANDIN[name]}. {data_set.how_to_get}",
                file=sys.stderr,
            )
        with suppress(OSError):  # then the next process asks and says it again
            save(note, f"{error}\n".encode())
        return standin
    # idx files open with a header: 16 bytes before images, 8 before labels.
    X_train, y_train, X_test, y_test = (np.frombuffer(content, np.uint8) for content in contents)
    shape = (-1, 1, 28, 28)
    arrays = X_train[16:].reshape(shape), y_train[8:], X_test[16:].reshape(shape), y_test[8:]
    return arrays, source, None


def _was_just_asked(note):
    """Whether ``note``, which the last failed download has left, is younger than AGAIN."""
    try:
        return 0 <= time.time() - note.stat().st_mtime < AGAIN
    except OSError:
        return False


def _standin(name):
    """What ``_load`` returns where the full files cannot be had."""
    arrays = _embedded_subset() if name == "fashion-mnist" else _digits()
    return arrays, STANDIN[name], STANDIN[name]


def _embedded_subset():
    with np.load(SUBSET) as arrays:
        return tuple(arrays[key] for key in ("X_train", "y_train", "X_test", "y_test"))


def _digits():
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError(
            "MNIST is not on this machine and could not be downloaded. The digits that stand in "
            f"for it need scikit-learn: pip install scikit-learn. {DATA_SETS['mnist'].how_to_get}"
        ) from error
    digits = load_digits()
    # Bilinear: each of 28 points along an edge lies between two of the 8 pixels.
    edge = np.linspace(0, 7, 28)
    scale = np.stack([np.interp(edge, np.arange(8), pixel) for pixel in np.eye(8)], axis=1)
    X = np.rint(scale @ digits.images @ scale.T * (255 / 16)).astype(np.uint8)[:, None]
    y = digits.target.astype(np.uint8)
    return X[:1500], y[:1500], X[1500:], y[1500:]
