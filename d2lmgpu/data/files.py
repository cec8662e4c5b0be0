"""The four files of Fashion-MNIST and of MNIST: where they are, whether they are sound, fetching.

Every file is checked, whatever its origin. A wrong one is an error that names it; the next place is
not tried in its stead.
"""

import gzip
import hashlib
import io
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.data.download import download
from d2lmgpu.machine.atomic_write import save

SYSTEM = Path("/usr/share/datasets")  # of Debian's package dataset-fashion-mnist
LONG = 200  # letters of a folder that an error shows
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


class DataError(ValueError):
    """A data file is missing or wrong, or more images were asked for than there are."""


@dataclass(frozen=True)
class DataFiles:
    """The four files of a data set: where they come from, and what they must be.

    ``checks`` holds (size in bytes, SHA-256) of each of FILES, decompressed: the archives in
    circulation were compressed by different programs. The mirrors' are the same, byte for byte.
    """

    title: str
    mirrors: tuple[str, str]
    checks: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """As in commands and names of folders."""
        return self.title.lower()

    @property
    def how_to_get(self) -> str:
        """A sentence for errors."""
        return (
            f"To have the full {self.title}, put its four .gz files from {self.mirrors[0]} or "
            f"{self.mirrors[1]} into one folder and set D2LMGPU_DATA to that folder."
        )


# SHA-256 of Debian's files; for MNIST, as loaders in public repositories state them.
DATA_SETS = {
    "fashion-mnist": DataFiles(
        "Fashion-MNIST",
        (
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        (
            (47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
            (60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
            (7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
            (10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
        ),
    ),
    "mnist": DataFiles(
        "MNIST",
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ),
        (
            (47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
            (60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
            (7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
            (10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        ),
    ),
}


def locate(data_set, setting, cache_folder) -> tuple | None:
    """``(where in words, the four paths)`` of the first place that has all files, else None.

    ``setting`` is D2LMGPU_DATA or None: a folder with the files, or with one for each data set.
    Where it is set nothing else is searched, and DataError is raised if it lacks a file.
    """
    if setting:
        shown = f"D2LMGPU_DATA={_short(setting)}"
        remedy = f"{data_set.how_to_get} Or unset it, to search elsewhere."
        try:
            folder = Path(setting).expanduser()
        except RuntimeError as error:  # ~ and the name of nobody
            raise DataError(f"{shown}: there is no such user's folder. {remedy}") from error
        if os.path.isdir(folder / data_set.name):
            folder = folder / data_set.name
        paths = _paths(folder)
        if None in paths:
            missing, where = FILES[paths.index(None)], _short(str(folder))
            raise DataError(f"{shown}: there is no {missing}, plain or .gz, in {where}. {remedy}")
        return f"D2LMGPU_DATA ({folder})", paths
    # torchvision's folders: its documentation says root="data", d2l says "../data".
    torchvision = Path(data_set.title.replace("-", ""), "raw")
    mxnet = Path(os.environ.get("MXNET_HOME") or os.path.expanduser("~/.mxnet"), "datasets")
    for where, folder in (
        ("the system's package", SYSTEM / data_set.name),
        ("torchvision's folder", "data" / torchvision),
        ("d2l's folder", "../data" / torchvision),
        ("MXNet's folder", mxnet / data_set.name),
        ("the cache", cache_folder / data_set.name),
    ):
        paths = _paths(folder)
        if None not in paths:
            return f"{where} ({folder})", paths
    return None


def _short(path):
    return path if len(path) <= LONG else f"{path[:LONG]}… ({len(path)} letters)"


def _paths(folder):
    """The path of each of FILES in ``folder``, plain or .gz; None for each that is not there."""
    return [
        next((p for p in (folder / file, folder / f"{file}.gz") if os.path.isfile(p)), None)
        for file in FILES
    ]


def read(data_set, i, path) -> bytes:
    """The content of file ``i`` of the data set, found at ``path``: checked and decompressed."""
    try:
        with open(path, "rb") as file:
            content = file.read(_largest(data_set, i) + 1)
    except OSError as error:
        remedy = data_set.how_to_get
        raise DataError(f"{path} cannot be read: {error.strerror}. {remedy}") from error
    remedy = f"Remove it, or put the file from {data_set.mirrors[0]}{FILES[i]}.gz in its place."
    return _checked(data_set, i, content, path, remedy)


def fetch(data_set, folder) -> tuple[str, list]:
    """``(where in words, contents)``: what ``folder``, in the cache, lacks is downloaded and kept.

    Raises DownloadError where no mirror gives a file, DataError where it is the wrong one.
    """
    contents, problem = [], None
    for i, path in enumerate(_paths(folder)):
        if path:
            contents.append(read(data_set, i, path))
            continue
        urls = [f"{mirror}{FILES[i]}.gz" for mirror in data_set.mirrors]
        archive = download(urls, _largest(data_set, i))
        remedy = f"Nothing of it was kept. {data_set.how_to_get}"
        contents.append(_checked(data_set, i, archive, f"What came for {urls[0]}", remedy))
        try:
            save(folder / f"{FILES[i]}.gz", archive)
        except OSError as error:
            problem = error
    if not problem:
        return f"the cache ({folder})", contents
    print(
        f"{data_set.title} was downloaded but not kept, since {folder} cannot be written "
        f"({problem.strerror}). Set D2LMGPU_CACHE to a folder that can.",
        file=sys.stderr,
    )
    return "a download, kept in memory only", contents


def _largest(data_set, i):
    """How many bytes file ``i`` of the data set may have, plain or compressed.

    gzip makes what it cannot compress longer by less than a hundredth, and adds a name.
    """
    size = data_set.checks[i][0]
    return size + size // 100 + 1024


def _checked(data_set, i, content, origin, remedy):
    """``content`` decompressed, if it is what file ``i`` of the data set has to be.

    Of what is longer no more than one byte too many is unpacked.
    """
    expected = data_set.checks[i]
    try:
        raw = content
        if content[:2] == b"\x1f\x8b":
            raw = gzip.GzipFile(fileobj=io.BytesIO(content)).read(expected[0] + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{origin} is truncated or damaged: {error}. {remedy}") from error
    actual = len(raw), hashlib.sha256(raw).hexdigest()
    if actual == expected:
        return raw
    held = f"{actual[0]:,} bytes with SHA-256 {actual[1]}"
    if actual[0] > expected[0]:
        held = "more bytes than that"
    raise DataError(
        f"{origin} is not {data_set.title}'s {FILES[i]}: it holds {held}, expected are "
        f"{expected[0]:,} bytes with {expected[1]}. {remedy}"
    )
