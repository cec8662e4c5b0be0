"""A machine without data, and a small data set that takes the place of Fashion-MNIST."""

import pytest
from mirrors import nobody_there, serve
from small_data import ARCHIVES, empty_machine, known

from d2lmgpu.data import datasets
from d2lmgpu.data.files import DATA_SETS


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """No data anywhere, and nothing in memory."""
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
