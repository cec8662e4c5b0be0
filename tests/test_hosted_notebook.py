"""A host with an older PyTorch, or with none, is told so before a chapter fails on it."""

from importlib.metadata import PackageNotFoundError

import pytest

from d2lmgpu.backend import need_torch
from d2lmgpu.course import hosted_notebook


@pytest.mark.parametrize("version", ["2.4.0", "2.13.0+cpu", "3.0.0a0"])
def test_a_version_that_will_do(version):
    need_torch(version)


@pytest.mark.parametrize("version", ["1.13.1", "2.3.1+cu121", "2.0"])
def test_an_older_one_is_refused_in_words(version):
    with pytest.raises(ImportError) as error:
        need_torch(version)
    assert version in str(error.value) and "torch>=2.4" in str(error.value)


def test_an_older_one_on_a_host_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hosted_notebook, "version", {"torch": "2.1.0"}.get)
    with pytest.raises(ImportError, match=r"2\.1\.0"):
        hosted_notebook.enter("scratch")
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_pytorch_is_told_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hosted_notebook, "version", missing)
    with pytest.raises(ImportError, match="pip install torch"):
        hosted_notebook.enter("scratch")
