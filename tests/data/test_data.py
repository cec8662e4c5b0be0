"""The arrays that users get, and what stands in for data that cannot be had."""

import builtins
import gzip
import os
import runpy
import socket
import struct
from pathlib import Path

import numpy as np
import pytest

from d2lmgpu.data import datasets, files
from d2lmgpu.data.datasets import DataError

pytestmark = pytest.mark.usefixtures("machine")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_network(monkeypatch):
    """No name can be resolved, and the real mirrors are asked for by name."""

    def fail(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_no_network_gives_the_embedded_subset_and_says_so(no_network, tmp_path, capsys):
    data = datasets.fashion_mnist()
    assert data.standin == "embedded subset: 6,000 + 1,000 real Fashion-MNIST images"
    assert data.X_train.shape == (6000, 1, 28, 28) and data.X_test.shape == (1000, 1, 28, 28)
    # The labels of the real files begin so: an ankle boot, then two T-shirts.
    assert data.y_train[:3].tolist() == [9, 0, 0] and data.y_test[:3].tolist() == [9, 2, 1]
    assert data.X_train.max() == 1 and 0.28 < data.X_train.mean() < 0.29
    datasets.fashion_mnist(100, 100)
    output = capsys.readouterr()
    (line,) = output.err.splitlines()  # once for both calls, and never into a program's output
    assert output.out == ""
    assert data.standin in line and "Name or service not known" in line
    assert "storage.googleapis.com" in line and "github.com" in line


@pytest.mark.parametrize("name", ["fashion_mnist", "mnist"])
def test_later_processes_say_nothing_and_ask_again_in_a_while(
    name, no_network, tmp_path, capsys, monkeypatch
):
    def another_process():
        datasets._load.cache_clear()
        return getattr(datasets, name)().standin, *capsys.readouterr()

    standin, out, err = another_process()
    assert standin in err and out == ""
    asked, real = [], datasets.fetch
    monkeypatch.setattr(datasets, "fetch", lambda *given: asked.append(given) or real(*given))
    assert another_process() == (standin, "", "") and not asked
    (note,) = (tmp_path / "cache").iterdir()
    os.utime(note, (0, 0))
    assert another_process() == (standin, "", "") and len(asked) == 1
    assert another_process() == (standin, "", "") and len(asked) == 1


def test_a_cache_that_cannot_be_written_is_no_failure(no_network, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("D2LMGPU_CACHE", str(tmp_path / "file" / "cache"))
    assert datasets.fashion_mnist().standin in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, -1, 6001, 2.5, "5", float("nan")])
@pytest.mark.parametrize("word", ["num_train", "num_test"])
def test_impossible_numbers_of_images(word, number, no_network):
    allowed = rf"{word}={number!r} .* from 1 to (6,000|1,000), or None"
    with pytest.raises(DataError, match=f"{allowed}.*embedded subset.*D2LMGPU_DATA"):
        datasets.fashion_mnist(**{word: number})


def test_first_images_and_arrays_of_ones_own(no_network):
    few, whole = datasets.fashion_mnist(7, np.int64(3)), datasets.fashion_mnist()
    np.testing.assert_array_equal(few.X_train, whole.X_train[:7])
    np.testing.assert_array_equal(few.y_test, whole.y_test[:3])
    few.X_train[:], few.y_train[:] = 0, 0  # writable, and nobody else's
    again = datasets.fashion_mnist()
    np.testing.assert_array_equal(again.X_train, whole.X_train)
    np.testing.assert_array_equal(again.y_train, whole.y_train)


def test_no_network_gives_digits_for_mnist_and_says_so(no_network, capsys):
    dataset = datasets.mnist()
    assert "not MNIST" in dataset.standin and dataset.source == dataset.standin
    (line,) = capsys.readouterr().err.splitlines()
    assert dataset.standin in line
    assert dataset.X_train.shape == (1500, 1, 28, 28) and dataset.X_test.shape == (297, 1, 28, 28)
    assert dataset.X_train.dtype == np.float32 and dataset.y_test.dtype == np.int64
    assert dataset.X_train.min() == 0 and dataset.X_train.max() == 1
    # Another interpolation of the same digits, by Pillow, puts the ink at the same places.
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    assert dataset.y_train.tolist() + dataset.y_test.tolist() == digits.target.tolist()
    for i in (0, 1, 1500):
        oracle = Image.fromarray(digits.images[i] / 16).resize((28, 28), Image.Resampling.BILINEAR)
        ours = (dataset.X_train[i] if i < 1500 else dataset.X_test[i - 1500])[0]
        assert np.corrcoef(ours.ravel(), np.asarray(oracle).ravel())[0, 1] > 0.9
    # The corner pixels are the original's, so nothing was shifted or mirrored.
    corners = np.ix_(range(297), (0, 27), (0, 27))
    expected = digits.images[1500:, ::7, ::7] / 16
    np.testing.assert_allclose(dataset.X_test[:, 0][corners], expected, atol=0.5 / 255 + 1e-6)


def test_digits_need_scikit_learn(no_network, monkeypatch):
    imports = builtins.__import__

    def without_sklearn(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return imports(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_sklearn)
    with pytest.raises(DataError, match="pip install scikit-learn"):
        datasets.mnist()


# The real files, where this machine has them


@pytest.fixture
def real_files(monkeypatch):
    monkeypatch.setattr(files, "SYSTEM", Path("/usr/share/datasets"))


def test_system_files_and_embedded_subset_agree(real_files):
    full = datasets.fashion_mnist()
    assert full.source == "the system's package (/usr/share/datasets/fashion-mnist)"
    assert full.X_train.shape == (60000, 1, 28, 28) and full.X_test.shape == (10000, 1, 28, 28)
    assert np.bincount(full.y_train).tolist() == [6000] * 10  # as the authors state
    assert np.bincount(full.y_test).tolist() == [1000] * 10
    X_train, y_train, X_test, y_test = datasets._embedded_subset()
    for whole, part in (
        (full.X_train, X_train / np.float32(255)),
        (full.y_train, y_train),
        (full.X_test, X_test / np.float32(255)),
        (full.y_test, y_test),
    ):
        np.testing.assert_array_equal(whole[: len(part)], part)


def test_subset_can_be_made_again(real_files, tmp_path):
    make = runpy.run_path(str(ROOT / "tools" / "make_subset.py"))
    make["main"](tmp_path / "subset.npz")
    with np.load(tmp_path / "subset.npz") as new, np.load(datasets.SUBSET) as shipped:
        assert sorted(new) == sorted(shipped) == ["X_test", "X_train", "y_test", "y_train"]
        for key in shipped:
            assert new[key].dtype == shipped[key].dtype == np.uint8
            np.testing.assert_array_equal(new[key], shipped[key])


def test_subset_ships_with_its_licence():
    text = datasets.SUBSET.with_suffix(".LICENSE").read_text()
    assert "MIT" in text and "Zalando SE" in text and "Permission is hereby granted" in text


def idx(content):
    """The array in such a file, whatever its shape, by the format's definition."""
    zero, kind, dimensions = struct.unpack(">HBB", content[:4])
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    assert (zero, kind) == (0, 8)  # of unsigned bytes
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


@pytest.mark.parametrize("num_train, num_test", [(1, 1), (49, 31), (6000, 1000)])
def test_saved_files_hold_the_images(num_train, num_test, no_network, tmp_path):
    ours = datasets.fashion_mnist(num_train, num_test)
    ours.save(tmp_path / "new")
    for name, array in zip(
        files.FILES, (ours.X_train, ours.y_train, ours.X_test, ours.y_test), strict=True
    ):
        array_read = idx(gzip.decompress((tmp_path / "new" / f"{name}.gz").read_bytes()))
        assert array_read.shape == (array.squeeze(1) if "images" in name else array).shape
        scaled = array_read.reshape(array.shape) / (255 if "images" in name else 1)
        np.testing.assert_allclose(scaled, array, rtol=1e-6)
    assert len(list((tmp_path / "new").iterdir())) == 4
