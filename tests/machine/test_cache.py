"""Which folders keep what is made or fetched once, and what the reader predicts."""

from pathlib import Path

import pytest

from d2lmgpu.machine.cache import cache, predictions


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"D2LMGPU_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"D2LMGPU_CACHE": "", "XDG_CACHE_HOME": "/b"}, "/b/d2lmgpu"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/d2lmgpu"),
        ({"XDG_CACHE_HOME": "", "HOME": "/c"}, "/c/.cache/d2lmgpu"),
        ({"HOME": "/c"}, "/c/.cache/d2lmgpu"),
    ],
)
def test_folder_of_the_cache(settings, folder, monkeypatch):
    for variable in ("D2LMGPU_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    assert cache() == Path(folder)


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"D2LMGPU_PREDICTIONS": "/a", "XDG_DATA_HOME": "/b"}, "/a"),
        ({"D2LMGPU_PREDICTIONS": "", "XDG_DATA_HOME": "/b"}, "/b/d2lmgpu/predictions"),
        ({"XDG_DATA_HOME": "", "HOME": "/c"}, "/c/.local/share/d2lmgpu/predictions"),
        ({"HOME": "/c"}, "/c/.local/share/d2lmgpu/predictions"),
    ],
)
def test_folder_of_predictions(settings, folder, monkeypatch):
    for variable in ("D2LMGPU_PREDICTIONS", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    assert predictions() == Path(folder)
