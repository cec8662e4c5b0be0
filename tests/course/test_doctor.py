"""The doctor says what there is, and exits with 1 and a remedy where something is missing."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from d2lmgpu import __main__ as cli
from d2lmgpu.course import doctor
from d2lmgpu.course.doctor import Framework
from d2lmgpu.data import files

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("D2LMGPU_")}
BOTH = [Framework("torch", "2.13.0+cpu"), Framework("mxnet", "1.9.1")]


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """Two cores, no variable of the course, no data anywhere."""
    for name in list(os.environ):
        if name.startswith("D2LMGPU_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(doctor, "num_cores", lambda: 2)
    monkeypatch.setattr(doctor.devices, "num_cores", lambda: 2)
    monkeypatch.setattr(files, "SYSTEM", tmp_path / "system")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "mxnet"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def line(lines, start):
    (only,) = [text for text in lines if text.startswith(start)]
    return only


def test_a_machine_without_gpus_has_all_that_is_needed():
    lines, problems = doctor.examine(BOTH, [])
    assert problems == []
    assert line(lines, "GPUs:") == "GPUs: none"
    assert line(lines, "Machine:").endswith(", 2 CPU cores")
    assert line(lines, "PyTorch 2.13.0+cpu: 2 CPU devices, one core each")
    assert line(lines, "MXNet 1.9.1: 2 CPU devices, one core each")
    assert line(lines, "Runs: quick profile: 6,000")
    assert "stands in for it" in line(lines, "Fashion-MNIST:")
    assert "not set, it is auto" in line(lines, "D2LMGPU_DEVICES: ")


def test_gpus_are_the_devices_and_the_full_recipe_runs():
    gpus = ["GPU 0: Some card", "GPU 1: Some card"]
    lines, problems = doctor.examine([Framework("torch", "2.13.0", 2), Framework("mxnet")], gpus)
    assert problems == []
    assert line(lines, "GPUs:") == "GPUs: GPU 0: Some card; GPU 1: Some card"
    assert line(lines, "PyTorch") == "PyTorch 2.13.0: 2 GPUs, each a device"
    assert line(lines, "MXNet").startswith("MXNet: not installed. Its chapters do not run.")
    assert line(lines, "Runs: full profile")


@pytest.mark.parametrize(
    "framework, remedy", [(BOTH[0], "the CUDA build"), (BOTH[1], "requirements-gpu.txt")]
)
def test_a_framework_that_does_not_see_the_gpu_is_told_of(framework, remedy):
    line, problems = doctor.check_framework(framework, there=1)
    assert remedy in line and problems == []
    assert remedy not in doctor.check_framework(framework, there=0)[0]


@pytest.mark.parametrize(
    "choice, words",
    [
        ("gpu:2", "2 GPUs, each a device"),
        ("gpu:3", "3 devices, gpu(0), gpu(1), gpu(0); runs on more than 2 are simulated"),
        ("gpu:1,cpu:1", "2 devices, gpu(0), cpu(0)"),
    ],
)
def test_shared_gpus_and_mixed_lists_are_named(monkeypatch, choice, words):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    lines, problems = doctor.examine([Framework("torch", "2.13.0", 2), Framework("mxnet")], ["a"])
    assert line(lines, "PyTorch") == f"PyTorch 2.13.0: {words}" and problems == []


def test_gpus_that_the_variable_leaves_alone_are_told_of(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu")
    line, problems = doctor.check_framework(Framework("torch", "2.13.0", 4), there=4)
    assert "2 CPU devices" in line and "4 GPUs left alone" in line and problems == []


@pytest.mark.parametrize(
    "choice, words",
    [("cpu:2", "2 CPU devices, one core each"), ("cpu:4", "runs on more than 2 are simulated")],
)
def test_what_is_simulated(monkeypatch, choice, words):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    assert words in doctor.check_framework(BOTH[0], there=0)[0]


def test_no_framework_at_all_is_a_problem_and_one_is_enough():
    nothing = [Framework("torch"), Framework("mxnet")]
    (problem,) = doctor.examine(nothing, [])[1]
    assert "pip install torch==2.13.0" in problem and "pip install mxnet==1.9.1" in problem
    assert doctor.examine([BOTH[0], Framework("mxnet")], [])[1] == []
    assert doctor.examine([Framework("torch"), BOTH[1]], [])[1] == []


def test_a_framework_that_cannot_be_imported_is_a_problem():
    broken = Framework("mxnet", problem="it cannot be imported: OSError: libcuda.so.1")
    lines, (problem,) = doctor.examine([BOTH[0], broken], [])
    assert line(lines, "MXNet:") == "MXNet: unusable, see below"
    assert "libcuda.so.1. To install it: pip install mxnet" in problem


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("D2LMGPU_DEVICES", "gpus", "Allowed: auto, gpu, cpu"),
        ("D2LMGPU_DEVICES", "gpu", "sees no GPU"),
        ("D2LMGPU_PROFILE", "fast", "Allowed: auto, quick, full, test"),
        ("D2LMGPU_DATA", "/nowhere", "set D2LMGPU_DATA to that folder"),
        ("D2LMGPU_DEVICE", "cpu", "known are D2LMGPU_DEVICES"),
    ],
)
def test_a_bad_value_is_a_problem_that_names_it_and_says_what_to_do(
    monkeypatch, name, value, words
):
    monkeypatch.setenv(name, value)
    problems = doctor.examine(BOTH, [])[1]
    assert problems and all(name in problem and words in problem for problem in problems)


def test_every_variable_that_the_package_names_is_known():
    code = "".join(path.read_text() for path in Path(doctor.__file__).parents[1].rglob("*.py"))
    named = set(re.findall(r"D2LMGPU_[A-Z]+(?:_[A-Z]+)*\b", code))
    assert {"D2LMGPU_SEED"} < named <= set(doctor.VARIABLES) | doctor.INTERNAL


@pytest.mark.parametrize("name", sorted(doctor.INTERNAL))
def test_what_the_course_sets_for_itself_is_no_problem(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert doctor.examine(BOTH, [])[1] == []


def test_a_value_is_shown_beside_what_it_means(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:3")
    assert line(doctor.check_variables()[0], "D2LMGPU_DEVICES=cpu:3: which devices")


def test_a_damaged_data_file_is_a_problem(monkeypatch, tmp_path):
    for name in files.FILES:
        (tmp_path / name).write_bytes(b"not the images")
    monkeypatch.setenv("D2LMGPU_DATA", str(tmp_path))
    line, (problem,) = doctor.check_data("fashion-mnist")
    assert line == "Fashion-MNIST: unusable, see below"
    assert str(tmp_path / files.FILES[0]) in problem


def test_the_driver_is_asked_for_gpus(monkeypatch, tmp_path):
    smi = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    listed = "GPU 0: Some card (UUID: GPU-1-2)\\nGPU 1: Other (UUID: GPU-3-4)\\n"
    smi.write_text(f"#!/bin/sh\nprintf '{listed}'\n")
    smi.chmod(0o755)
    assert doctor.installed_gpus() == ["GPU 0: Some card", "GPU 1: Other"]
    smi.write_text("#!/bin/sh\necho 'no driver'\nexit 9\n")
    assert doctor.installed_gpus() == []
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert doctor.installed_gpus() == []


# Frameworks that are asked in a process of their own: stand-ins found before the real ones.


@pytest.fixture
def standin(monkeypatch, tmp_path):
    """Replaces the backend ``d2lmgpu.torch`` and ``torch`` in the processes that are started."""

    def write(source):
        folder = tmp_path / "standin"
        (folder / "d2lmgpu").mkdir(parents=True)
        (folder / "d2lmgpu" / "__init__.py").touch()
        (folder / "d2lmgpu" / "torch.py").write_text(source)
        (folder / "torch.py").write_text("__version__ = '9.9'")
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return write


def test_probe_of_a_framework(standin):
    standin("print('a greeting')\ndef num_gpus(): return 3")
    assert doctor.probe("torch") == Framework("torch", "9.9", 3)


def test_probe_of_a_framework_that_is_not_installed(standin):
    standin("raise ModuleNotFoundError('No module', name='torch')")
    assert doctor.probe("torch") == Framework("torch")


@pytest.mark.parametrize(
    "source, words",
    [
        ("raise ModuleNotFoundError('No module', name='numpy')", "ModuleNotFoundError: No module"),
        ("raise OSError('libcuda.so.1')", "OSError: libcuda.so.1"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "exit status -4"),
    ],
)
def test_probe_of_a_framework_that_cannot_be_imported(standin, source, words):
    standin(source)
    framework = doctor.probe("torch")
    assert framework.version is None and words in framework.problem


def test_probe_of_a_framework_that_hangs_ends(standin):
    standin("import time; time.sleep(600)")
    start = time.monotonic()
    assert "more than 1 seconds" in doctor.probe("torch", seconds=1).problem
    assert time.monotonic() - start < 60


# The command


def test_command_exits_with_1_and_prints_the_problems(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "probe", lambda name: Framework(name))
    monkeypatch.setattr(doctor, "installed_gpus", list)
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2] == "1 problem:"
    assert printed[-1].startswith("- Neither PyTorch nor MXNet is installed.")


def test_command_exits_with_0_where_nothing_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "probe", lambda name: Framework(name, "1.0"))
    monkeypatch.setattr(doctor, "installed_gpus", list)
    assert cli.main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No problem found."


def test_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as refused:
        cli.main(["nurse"])
    assert refused.value.code == 2 and "doctor" in capsys.readouterr().err


def test_real_run():
    """The frameworks as they are installed here; the data where it is."""
    command = [sys.executable, "-m", "d2lmgpu", "doctor"]
    env = ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for name, title in doctor.TITLES.items():
        missing = line(lines, title).startswith(f"{title}: not installed")
        assert missing == (importlib.util.find_spec(name) is None)
    assert lines[-1] == "No problem found."
