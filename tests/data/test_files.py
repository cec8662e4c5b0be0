"""Where the four files are found, what is refused, and what is downloaded and kept.

A small data set takes the place of Fashion-MNIST: neither the network nor the real files are used.
"""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from mirrors import nobody_there, serve
from small_data import ARCHIVES, PLAIN, X, assert_small, empty_machine, known, put

from d2lmgpu.data import datasets
from d2lmgpu.data.datasets import DataError
from d2lmgpu.data.files import DATA_SETS, FILES

IMAGES, LABELS = FILES[:2]  # of the training set


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    empty_machine(monkeypatch, tmp_path)
    yield
    datasets._load.cache_clear()


@pytest.fixture
def offline(monkeypatch):
    """The small data set, at mirrors that refuse connections."""
    with nobody_there() as url:
        monkeypatch.setitem(DATA_SETS, "fashion-mnist", known((url, url)))
        yield


@pytest.fixture
def mirrors(monkeypatch):
    """The small data set at two mirrors."""
    files = {f"/{name}": content for name, content in ARCHIVES.items()}
    with serve(dict(files)) as first, serve(dict(files)) as second:
        monkeypatch.setitem(DATA_SETS, "fashion-mnist", known((first.url, second.url)))
        yield first, second


PLACES = {
    "the system's package": "system/fashion-mnist",
    "torchvision's folder": "work/data/FashionMNIST/raw",
    "d2l's folder": "data/FashionMNIST/raw",
    "MXNet's folder": "home/.mxnet/datasets/fashion-mnist",
    "the cache": "cache/fashion-mnist",
}


@pytest.mark.parametrize("files", [PLAIN, ARCHIVES], ids=["plain", "gz"])
@pytest.mark.parametrize("where", PLACES)
def test_full_files_are_found(where, files, tmp_path, offline, capsys):
    put(tmp_path / PLACES[where], files)
    found = datasets.fashion_mnist()
    assert_small(found)
    assert found.source.startswith(f"{where} (")
    assert datasets.describe("fashion-mnist") == f"Fashion-MNIST: {found.source}"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("folder", ["mine", "mine/fashion-mnist"])
def test_chosen_folder_comes_before_all_others(folder, tmp_path, offline, monkeypatch):
    put(tmp_path / PLACES["the system's package"], {**ARCHIVES, FILES[0]: b"not looked at"})
    put(tmp_path / folder, ARCHIVES)
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path / "mine"))
    found = datasets.fashion_mnist()
    assert_small(found)
    assert found.source == f"D2LMGPU_DATA ({tmp_path / folder})"


def test_places_are_searched_in_the_documented_order(tmp_path, offline):
    for where in reversed(PLACES):
        put(tmp_path / PLACES[where], PLAIN)
        datasets._load.cache_clear()
        assert datasets.fashion_mnist().source.startswith(where)


def test_place_that_lacks_a_file_is_passed_over(tmp_path, offline):
    put(tmp_path / PLACES["the system's package"], {IMAGES: PLAIN[IMAGES]})
    put(tmp_path / PLACES["the cache"], PLAIN)
    assert datasets.fashion_mnist().source.startswith("the cache")


# What is refused


def test_chosen_folder_without_a_file(tmp_path, offline, monkeypatch):
    put(tmp_path / "mine", {**ARCHIVES})
    (tmp_path / "mine" / f"{LABELS}.gz").unlink()
    put(tmp_path / PLACES["the system's package"], ARCHIVES)  # no fallback to what is there
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path / "mine"))
    for ask in (datasets.fashion_mnist, lambda: datasets.describe("fashion-mnist")):
        with pytest.raises(DataError, match=f"D2LMGPU_DATA=.*no {LABELS}.*unset it"):
            ask()


def test_chosen_folder_that_does_not_exist(tmp_path, offline, monkeypatch):
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=f"no {IMAGES}.* in {tmp_path / 'nowhere'}"):
        datasets.fashion_mnist()


def test_changed_setting_is_noticed(tmp_path, offline, monkeypatch):
    put(tmp_path / PLACES["the cache"], PLAIN)
    assert_small(datasets.fashion_mnist())
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError):
        datasets.fashion_mnist()


@pytest.mark.parametrize("setting", ["D2LMGPU_DATA", None], ids=["chosen", "cache"])
@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (f"{IMAGES}.gz", ARCHIVES[f"{IMAGES}.gz"][:-5000], "truncated or damaged"),
        (f"{IMAGES}.gz", ARCHIVES[f"{IMAGES}.gz"][:-1], "truncated or damaged"),
        (f"{IMAGES}.gz", b"\x1f\x8bnonsense", "truncated or damaged"),
        (IMAGES, PLAIN[IMAGES][:-1], "holds 23,535 bytes .* expected are 23,536 bytes"),
        (IMAGES, b"", "holds 0 bytes"),
        (IMAGES, bytes(23536), "SHA-256 .* expected are 23,536 bytes with " + "[0-9a-f]{64}"),
        (f"{IMAGES}.gz", gzip.compress(bytes(23536)), "holds 23,536 bytes with SHA-256"),
    ],
    ids=["cut gz", "last byte gone", "bad gz", "cut", "empty", "other", "other gz"],
)
def test_wrong_file_is_an_error_that_names_it(
    setting, name, content, complaint, tmp_path, mirrors, monkeypatch
):
    folder = tmp_path / "cache" / "fashion-mnist"
    if setting:
        monkeypatch.setenv(setting, str(tmp_path / "cache"))
    others = {file: text for file, text in PLAIN.items() if file != IMAGES}
    put(folder, {**others, name: content})
    with pytest.raises(DataError, match=complaint) as error:
        datasets.fashion_mnist()
    assert str(folder / name) in str(error.value) and "Remove it" in str(error.value)
    assert not any(mirror.requests for mirror in mirrors)  # neither repaired nor passed over
    assert (folder / name).read_bytes() == content


def test_more_images_than_there_are(tmp_path, offline):
    put(tmp_path / PLACES["the cache"], PLAIN)
    with pytest.raises(DataError, match=r"num_test=11 .* from 1 to 10, or None .* there are\.$"):
        datasets.fashion_mnist(30, 11)


def test_files_are_read_once(tmp_path, offline):
    put(tmp_path / PLACES["the cache"], PLAIN)
    datasets.fashion_mnist()
    shutil.rmtree(tmp_path / "cache")
    assert_small(datasets.fashion_mnist(30))


# Downloads


def cached(tmp_path):
    folder = tmp_path / "cache" / "fashion-mnist"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_download_is_kept_and_used_again(tmp_path, mirrors, capsys):
    assert "not on this machine" in datasets.describe("fashion-mnist")
    found = datasets.fashion_mnist()
    assert_small(found)
    assert cached(tmp_path) == ARCHIVES and capsys.readouterr().out == ""
    datasets._load.cache_clear()
    assert datasets.fashion_mnist().source == found.source
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
    found = datasets.fashion_mnist()
    assert_small(found)
    assert found.source == "a download, kept in memory only"
    (line,) = capsys.readouterr().out.splitlines()
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
    line, source, total = out.splitlines() or [err, "", ""]
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
