"""Where the four files are found: in the documented places, in the documented order.

A small data set takes the place of Fashion-MNIST: neither the network nor the real files are used.
"""

import shutil

import pytest
from small_data import ARCHIVES, PLACES, PLAIN, assert_small, put

from d2lmgpu.data import datasets
from d2lmgpu.data.files import FILES

pytestmark = pytest.mark.usefixtures("machine")

IMAGES = FILES[0]  # of the training set


@pytest.mark.parametrize("files", [PLAIN, ARCHIVES], ids=["plain", "gz"])
@pytest.mark.parametrize("where", PLACES)
def test_full_files_are_found(where, files, tmp_path, offline, capsys):
    put(tmp_path / PLACES[where], files)
    data = datasets.fashion_mnist()
    assert_small(data)
    assert data.source.startswith(f"{where} (")
    assert datasets.describe("fashion-mnist") == f"Fashion-MNIST: {data.source}"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("folder", ["mine", "mine/fashion-mnist"])
def test_chosen_folder_comes_before_all_others(folder, tmp_path, offline, monkeypatch):
    put(tmp_path / PLACES["the system's package"], {**ARCHIVES, FILES[0]: b"not looked at"})
    put(tmp_path / folder, ARCHIVES)
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path / "mine"))
    data = datasets.fashion_mnist()
    assert_small(data)
    assert data.source == f"D2LMGPU_DATA ({tmp_path / folder})"


def test_places_are_searched_in_the_documented_order(tmp_path, offline):
    for where in reversed(PLACES):
        put(tmp_path / PLACES[where], PLAIN)
        datasets._load.cache_clear()
        assert datasets.fashion_mnist().source.startswith(where)


def test_place_that_lacks_a_file_is_passed_over(tmp_path, offline):
    put(tmp_path / PLACES["the system's package"], {IMAGES: PLAIN[IMAGES]})
    put(tmp_path / PLACES["the cache"], PLAIN)
    assert datasets.fashion_mnist().source.startswith("the cache")


def test_files_are_read_once(tmp_path, offline):
    put(tmp_path / PLACES["the cache"], PLAIN)
    datasets.fashion_mnist()
    shutil.rmtree(tmp_path / "cache")
    assert_small(datasets.fashion_mnist(30))
