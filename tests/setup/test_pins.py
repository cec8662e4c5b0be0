"""What is installed is exact, fits together, and names no place to get it from."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pins(name):
    lines = (ROOT / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(
    "name", [f"requirements{which}.txt" for which in ("", "-gpu", "-release", "-frameworks")]
)
def test_requirements_are_exact_and_listed_once(name):
    assert [line for line in pins(name) if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    names = [line.split("==")[0].lower() for line in pins(name)]
    assert len(names) == len(set(names))


def test_gpu_requirements_replace_mxnet_and_agree_on_numpy():
    gpu, cpu = set(pins("requirements-gpu.txt")), set(pins("requirements.txt"))
    assert "mxnet-cu112==1.9.1" in gpu and not any(line.startswith("mxnet==") for line in gpu)
    assert {line for line in gpu if line.startswith("numpy==")} <= cpu


def test_the_frameworks_train_with_the_pytorch_of_the_course():
    frameworks, course = pins("requirements-frameworks.txt"), pins("requirements.txt")
    torch = [line for line in course if line.startswith("torch==")]
    assert torch and torch[0] in frameworks


def test_installed_packages_fit_together():
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("folder", [".", "tests/npm", "tools/browser"])
def test_package_lock_is_exact_and_names_no_registry(folder):
    lock = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    wanted = json.loads((ROOT / folder / "package.json").read_text())["dependencies"]
    assert lock[""]["dependencies"] == wanted
    assert [name for name, package in lock.items() if "resolved" in package] == []
    assert [name for name, package in lock.items() if name and "integrity" not in package] == []
