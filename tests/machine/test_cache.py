"""Which folder keeps what is made or fetched once."""

from pathlib import Path

import pytest

from d2lmgpu.machine.cache import cache


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
