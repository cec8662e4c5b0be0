"""What is downloaded and kept: by one process or by two, whole or not at all, where it may be."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from small_data import ARCHIVES, PLAIN, X, assert_small, put

from d2lmgpu.data import datasets
from d2lmgpu.data.datasets import DataError
from d2lmgpu.data.files import DATA_SETS, FILES

pytestmark = pytest.mark.usefixtures("machine")

IMAGES, LABELS = FILES[:2]  # of the training set


def cached(tmp_path):
    folder = tmp_path / "cache" / "fashion-mnist"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_download_is_kept_and_used_again(tmp_path, mirrors, capsys):
    assert "not on this machine" in datasets.describe("fashion-mnist")
    data = datasets.fashion_mnist()
    assert_small(data)
    assert cached(tmp_path) == ARCHIVES and capsys.readouterr().out == ""
    datasets._load.cache_clear()
    assert datasets.fashion_mnist().source == data.source
    assert [path for path, _, _ in mirrors[0].requests] == [f"/{name}" for name in ARCHIVES]


def test_only_what_the_cache_lacks_is_downloaded(tmp_path, mirrors):
    put(tmp_path / "cache" / "fashion-mnist", {IMAGES: PLAIN[IMAGES]})
    assert_small(datasets.fashion_mnist())
    assert f"/{IMAGES}.gz" not in [path for path, _, _ in mirrors[0].requests]
    assert len(mirrors[0].requests) == 3


def test_mirror_that_dies_half_way_is_followed_by_the_next(tmp_path, mirrors):
    first, second = mirrors
    first.stop_at = 5000  # of the archives only the images' are longer
    assert_small(datasets.fashion_mnist())
    resumed = [(path, wanted) for path, wanted, _ in second.requests]
    assert resumed == [(f"/{FILES[i]}.gz", "bytes=5000-") for i in (0, 2)]
    assert first.sent() + second.sent() == sum(map(len, ARCHIVES.values()))
    assert cached(tmp_path) == ARCHIVES


def test_wrong_checksum_of_a_download(tmp_path, mirrors):
    first, second = mirrors
    first.files[f"/{LABELS}.gz"] = gzip.compress(bytes(38))
    with pytest.raises(DataError, match=f"came for {first.url}{LABELS}.gz is not Fashion-MNIST's"):
        datasets.fashion_mnist()
    assert cached(tmp_path) == {f"{IMAGES}.gz": ARCHIVES[f"{IMAGES}.gz"]}
    assert len(first.requests) == 2 and not second.requests  # no second try


CHILD = """if True:
    import json, os, sys
    from d2lmgpu.data import datasets, files
    settings = json.loads(sys.argv[1])
    os.environ["D2LMGPU_CACHE"] = settings["cache"]
    files.SYSTEM = files.Path("/nonexistent")
    checks = tuple(tuple(check) for check in settings["checks"])
    files.DATA_SETS["fashion-mnist"] = files.DataFiles(
        "Fashion-MNIST", tuple(settings["mirrors"]), checks
    )
    import encodings.idna  # what is imported later may be out of another user's reach
    if settings.get("user"):
        os.setuid(settings["user"])
    found = datasets.fashion_mnist()
    print(found.source)
    print(found.X_train.sum(dtype=float), found.standin)
"""
SUM = float((X["train"].astype(np.float32) / np.float32(255)).sum(dtype=float))


def child(cache, **more):
    """Another process that asks for the small data set; ``communicate()`` gives what it printed."""
    small = DATA_SETS["fashion-mnist"]
    settings = {"cache": str(cache), "checks": small.checks, "mirrors": small.mirrors, **more}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_download_at_once(tmp_path, mirrors):
    mirrors[0].meet = threading.Barrier(2, timeout=60)  # each file is asked for by both together
    children = [child(tmp_path / "cache") for _ in range(2)]
    for process in children:
        out, err = process.communicate()
        assert out == f"the cache ({tmp_path / 'cache' / 'fashion-mnist'})\n{SUM} None\n", err
    assert len(mirrors[0].requests) == 8
    assert cached(tmp_path) == ARCHIVES


def test_killed_half_way(tmp_path, mirrors):
    mirrors[0].stop_at, mirrors[0].stalls = 5000, True
    process = child(tmp_path / "cache")
    while (seen := process.stderr.read(1)) != "%":  # it has received something
        assert seen, "it ended before it showed any progress"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert cached(tmp_path) == {}


def test_cache_that_cannot_be_made(tmp_path, mirrors, monkeypatch, capsys):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("D2LMGPU_CACHE", str(tmp_path / "file" / "cache"))
    data = datasets.fashion_mnist()
    assert_small(data)
    assert data.source == "a download, kept in memory only"
    output = capsys.readouterr()
    line = output.err.splitlines()[-1]  # after the progress of each file
    assert output.out == ""
    assert "cannot be written (Not a directory)" in line and "D2LMGPU_CACHE" in line


@pytest.fixture
def for_nobody():
    """A folder in a place that every user may enter, and the user to enter it as.

    Root may read and write whatever it likes, so a process of root's becomes "nobody".
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "fashion-mnist")
        folder.mkdir()
        os.chmod(name, 0o755)
        yield folder, 65534 if os.geteuid() == 0 else None
        folder.chmod(0o755)


def test_read_only_cache(mirrors, for_nobody):
    folder, user = for_nobody
    put(folder, {IMAGES: PLAIN[IMAGES]})
    folder.chmod(0o555)
    out, err = child(folder.parent, user=user).communicate()
    source, total = out.splitlines()
    line = err.splitlines()[-1]
    assert "cannot be written (Permission denied)" in line and "D2LMGPU_CACHE" in line
    assert source == "a download, kept in memory only" and total == f"{SUM} None"
    assert len(mirrors[0].requests) == 3  # the file that is there was used
    assert os.listdir(folder) == [IMAGES]


def test_file_without_permission_to_read(mirrors, for_nobody):
    folder, user = for_nobody
    put(folder, PLAIN)
    (folder / LABELS).chmod(0)
    out, err = child(folder.parent, user=user).communicate()
    assert f"DataError: {folder / LABELS} cannot be read: Permission denied" in err and not out
