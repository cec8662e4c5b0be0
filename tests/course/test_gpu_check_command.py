"""``make gpu-check`` says what is missing, and fails, where there is nothing to check."""

import os
import subprocess
import sys
from pathlib import Path

import gpu_stand_in
import pytest

from d2lmgpu.course import gpu_check

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "d2lmgpu", "gpu-check", "--mxnet", "no-such/python"]


def run(tmp_path, listed):
    """The command where the driver lists these GPUs; ``(exit status, output)``."""
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\nprintf '{listed}'\n")
    driver.chmod(0o755)
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(COMMAND, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_without_a_gpu_it_says_so_and_fails(tmp_path):
    status, text = run(tmp_path, "")
    assert status == 1
    assert text.startswith("No GPU to check: nvidia-smi lists none. Install NVIDIA's driver")


def test_what_a_framework_lacks_is_said_for_each(tmp_path):
    """A driver with two GPUs, a CPU build of PyTorch, and no environment for MXNet."""
    status, text = run(tmp_path, "GPU 0: A card (UUID: a)\\nGPU 1: A card (UUID: b)\\n")
    assert status == 1
    lines = text.splitlines()
    assert lines[:2] == ["GPU 0: A card", "GPU 1: A card"]
    assert lines[2].startswith("PyTorch sees 0 of 2 GPUs. It takes the CUDA build")
    assert lines[3].startswith("MXNet: there is no no-such/python. It takes the packages of req")
    assert lines[4] == "The check failed for torch and mxnet"
    assert not (tmp_path / "records").exists()


def test_one_gpu_is_said_to_be_one():
    facts = {"single": [{"device": 0, "distance": 1e-16}], "parity": [], "copies": []}
    lines, problems = gpu_check.report(facts)
    assert problems == [] and lines[-1] == "There is one GPU: nothing was checked between two."


def test_replicas_on_one_gpu_that_compute_something_else_are_a_problem():
    shared = [
        {"choice": "gpu:2", "backend": backend, "distance": far}
        for backend, far in ((None, 1e-16), ("gloo", 0.5))
    ]
    facts = {"single": [], "parity": [], "copies": [], "shared": shared}
    lines, problems = gpu_check.report(facts)
    assert len(lines) == 2 and len(problems) == 1
    assert problems[0].startswith("D2LMGPU_DEVICES=gpu:2, DDP over gloo: an update is 5.0e-01 from")


def test_an_environment_without_the_framework_is_said(monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "import_module", lambda name: __import__("no_such_framework"))
    assert gpu_check.check_framework("mxnet", 1) == 1
    assert capsys.readouterr().out.startswith("MXNet: No module named")


@pytest.mark.soak
def test_a_checked_machine_is_recorded(tmp_path, monkeypatch, capsys):
    """The whole of ``check_framework``, on stand-ins for two GPUs."""
    from d2lmgpu.records import store

    monkeypatch.setenv("D2LMGPU_DEVICES", "gpu")
    put_in = "import gpu_stand_in as s; s.put_in('torch', 2, setattr)"
    (tmp_path / "sitecustomize.py").write_text(put_in)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # of launch's workers, too
    gpu_stand_in.put_in("torch", 2, monkeypatch.setattr)
    monkeypatch.setattr(gpu_check, "ELEMENTS", 1000)
    monkeypatch.chdir(tmp_path)
    assert gpu_check.check_framework("torch", 2) == 0
    (path,) = (tmp_path / "records").iterdir()
    assert path.stem.endswith("-gpu-check-torch")
    record = store.read(path)
    assert record["command"] == "make gpu-check" and record["kind"] == "measured"
    assert [copy["bytes"] for copy in record["copies"]] == [4000, 4000]
    assert [(update["choice"], update["backend"]) for update in record["shared"]] == [
        ("gpu:3", None),
        ("gpu:3", "gloo"),
        ("gpu:1,cpu:2", None),
        ("gpu:1,cpu:2", "gloo"),
    ]
    assert all(update["distance"] < 1e-12 for update in record["shared"])
    assert capsys.readouterr().out.splitlines()[-1].endswith(path.name)
