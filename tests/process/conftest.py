"""Four devices, and the traces of the processes that a test starts on them."""

import os
import tempfile

import gpu_stand_in
import pytest
from processes import kill
from traces import Traces


@pytest.fixture
def traces(monkeypatch, tmp_path):
    traces = Traces(tmp_path)
    monkeypatch.setenv("D2LMGPU_TEST", traces.mark)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:4")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield traces
    kill(traces.processes())  # a failed test must not leave them to the next


@pytest.fixture
def gpus(traces, monkeypatch, tmp_path):
    """Let the processes that a test starts, and itself, see ``n`` stand-ins for GPUs.

    ``more`` is code for the processes alone.
    """

    def see(n, choice, more=""):
        put_in = f"import gpu_stand_in as s; s.put_in('torch', {n}, setattr)\n{more}"
        (tmp_path / "sitecustomize.py").write_text(put_in)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # launch hands it on
        monkeypatch.setenv("D2LMGPU_DEVICES", choice)
        gpu_stand_in.put_in("torch", n, monkeypatch.setattr)

    return see
