"""What must be left after each test of the lab: nothing. A recorder, and a lab."""

import tempfile

import pytest
from recording import MARK, SECONDS, Recorder, lab_processes
from trains import trains_a_little

from d2lmgpu.lab import runner
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.pool import POOL


@pytest.fixture(autouse=True)
def mark(monkeypatch, tmp_path):
    """Whatever a test does, afterwards no process and no temporary file of a run is there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    mark = str(folder)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield mark
    POOL.end_spare()
    assert lab_processes(mark) == []
    assert list(folder.iterdir()) == []


@pytest.fixture
def all_the_time(monkeypatch):
    """A run that is stopped and ends by itself is not killed, however long that takes."""
    monkeypatch.setattr(runner, "GRACE", SECONDS)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def lab():
    model = LabModel({"Python": trains_a_little}, num_gpus=2, batch_size=64, lr=0.2)
    yield model
    model.stop()
    model.runner.wait(SECONDS)
