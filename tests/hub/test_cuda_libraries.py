"""The libraries of mxnet-cu112: loaded in order, and missed by name. No GPU is needed."""

import ctypes
import re
from pathlib import Path

import pytest
from cuda_stub import build

from d2lmgpu.machine import cuda_libraries
from d2lmgpu.machine.cuda_libraries import WHEELS, CudaLibraryError, preload

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installed(monkeypatch):
    """As if mxnet-cu112 were installed."""
    monkeypatch.setattr(cuda_libraries, "distribution", lambda name: name)


@pytest.fixture
def driver(monkeypatch):
    """Load the library at a path where libcuda.so.1 is asked for; everything else is missing."""

    def install(path):
        real = ctypes.CDLL

        def load(name, mode=ctypes.DEFAULT_MODE):
            if name == "libcuda.so.1" and path is not None:
                return real(str(path), mode)
            raise OSError(name)

        monkeypatch.setattr(ctypes, "CDLL", load)

    return install


def test_nothing_happens_without_mxnet_cu112(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda *a: pytest.fail("a library was loaded"))
    preload()


def test_no_driver_is_said(installed, driver):
    driver(None)
    with pytest.raises(CudaLibraryError, match=r"no NVIDIA driver .*install driver 460.27.03"):
        preload()


def test_an_old_driver_is_said(installed, driver, tmp_path):
    driver(build(tmp_path, version=10020))
    with pytest.raises(CudaLibraryError, match=r"is for CUDA 10.2; mxnet-cu112 needs CUDA 11.2"):
        preload()


def test_a_silent_driver_is_said(installed, driver, tmp_path):
    driver(build(tmp_path, error=34))
    with pytest.raises(CudaLibraryError, match="does not answer: CUDA error 34"):
        preload()


def test_every_missing_library_is_named_with_its_wheel(installed, driver, tmp_path):
    driver(build(tmp_path))
    with pytest.raises(CudaLibraryError) as error:
        preload()
    for wheel, _, _ in WHEELS:
        assert wheel in str(error.value)


def test_libraries_are_loaded_for_all_in_order(installed, monkeypatch, tmp_path):
    loaded = []
    for _, folder, library in WHEELS:
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True)
        (tmp_path / "nvidia" / folder / "lib" / library).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cuda_libraries, "check_driver", lambda: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: loaded.append((path, mode)))
    preload()
    assert [Path(path).name for path, _ in loaded] == [library for _, _, library in WHEELS]
    assert all(Path(path).is_relative_to(tmp_path) for path, _ in loaded)
    assert {mode for _, mode in loaded} == {ctypes.RTLD_GLOBAL}


def test_the_wheels_are_those_of_the_requirements():
    text = (ROOT / "requirements-gpu.txt").read_text()
    assert re.findall(r"^nvidia-\S+", text, re.M) == [wheel for wheel, _, _ in WHEELS]
