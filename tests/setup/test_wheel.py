"""The package as pip builds it: everything that it needs is in it, and the checkout stays clean."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tracked import tracked

ROOT = Path(__file__).resolve().parents[2]
BUILD = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check"]


def test_a_wheel_holds_the_package_and_leaves_nothing(tmp_path):
    checkout = tmp_path / "checkout"
    names = [str(path.relative_to(ROOT)) for path in tracked()]
    for name in names:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", *BUILD, "-w", tmp_path, checkout]
    subprocess.run(command, check=True)
    left = {str(p.relative_to(checkout)) for p in checkout.rglob("*") if p.is_file()}
    assert left == set(names)
    (wheel,) = tmp_path.glob("d2lmgpu-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if name.startswith("d2lmgpu/")}
    rooms = ("chapters/", "clusters/", "records/")
    course = {f"d2lmgpu/files/{name}" for name in names if name.startswith(rooms)}
    about = {name for name in held if name.startswith("d2lmgpu-")}
    assert held - about == package | course - {"d2lmgpu/files/chapters/conftest.py"}
    (commands,) = [name for name in about if name.endswith("/entry_points.txt")]
    assert "d2lmgpu = d2lmgpu.__main__:main" in zipfile.ZipFile(wheel).read(commands).decode()


@pytest.mark.parametrize(
    "room, name", [("lab", "TrainingLab"), ("predictions", "Prediction")], ids=["lab", "prediction"]
)
@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets", "psygnal", "traitlets"])
def test_a_lab_without_its_widgets_says_what_to_install(missing, room, name):
    program = f"import sys; sys.modules[{missing!r}] = None; from d2lmgpu.{room} import {name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: The training lab needs")
    assert "d2lmgpu[lab]" in done.stderr and missing in done.stderr
