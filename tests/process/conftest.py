"""Four devices, and the traces of the processes that a test starts on them."""

import tempfile

import pytest
from traces import Traces


@pytest.fixture
def traces(monkeypatch, tmp_path):
    traces = Traces(tmp_path)
    monkeypatch.setenv("D2LMGPU_TEST", traces.mark)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:4")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield traces
    for process in traces.processes():  # a failed test must not leave them to the next
        process.kill()
