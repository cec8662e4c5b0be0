"""What must be left after each test of the lab: nothing."""

import tempfile

import pytest
from recording import MARK, Recorder, lab_processes

from d2lmgpu.lab import runner


@pytest.fixture(autouse=True)
def mark(monkeypatch, tmp_path):
    """Whatever a test does, afterwards no process and no temporary file of a run is there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    mark = str(folder)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield mark
    runner.end_spare()
    assert lab_processes(mark) == []
    assert list(folder.iterdir()) == []


@pytest.fixture
def recorder():
    return Recorder()
