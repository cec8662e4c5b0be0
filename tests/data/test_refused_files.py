"""Files that are not what was asked for, or cannot be: an error that names them, and no repair."""

import gzip
import tracemalloc

import pytest
from small_data import ARCHIVES, PLACES, PLAIN, assert_small, put

from d2lmgpu.data import datasets
from d2lmgpu.data.datasets import DataError
from d2lmgpu.data.files import FILES

pytestmark = pytest.mark.usefixtures("machine")

IMAGES, LABELS = FILES[:2]  # of the training set


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


BLOCK = gzip.compress(bytes(10**6))
TOO_LARGE = {  # for a file of 24 KB
    "unpacked": gzip.compress(bytes(2 * 10**7)),
    "members": BLOCK * 20,
    "valid first": ARCHIVES[f"{IMAGES}.gz"] + BLOCK,
    "plain": None,
    "archive": gzip.compress(bytes(10**8), 0),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_what_is_too_large_is_refused_before_it_fills_the_memory(case, tmp_path, mirrors):
    folder = tmp_path / "cache" / "fashion-mnist"
    put(folder, PLAIN)
    (folder / IMAGES).unlink()
    path = folder / f"{IMAGES}.gz"
    if case == "plain":
        path = folder / IMAGES
        with open(path, "wb") as file:
            file.truncate(10**8)  # a hole: it takes no room on the disk
    else:
        path.write_bytes(TOO_LARGE[case])
    peak = refused(match=f"{path} is not .*holds more bytes than that, expected are 23,536")
    assert peak < 10**6


@pytest.mark.parametrize("case", ["unpacked", "members", "valid first"])
def test_what_comes_and_is_too_large_is_refused_as_well(case, tmp_path, mirrors):
    for mirror in mirrors:
        mirror.files[f"/{IMAGES}.gz"] = TOO_LARGE[case]
    assert refused(match="What came for .* holds more bytes than that") < 10**6
    assert not (tmp_path / "cache").exists()


def test_an_archive_of_what_cannot_be_compressed_is_read(tmp_path, offline):
    put(tmp_path / PLACES["the cache"], {f"{f}.gz": gzip.compress(PLAIN[f], 0) for f in FILES})
    assert_small(datasets.fashion_mnist())


def refused(match):
    """Bytes of memory that were in use at most while the data set was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=match):
            datasets.fashion_mnist()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
