"""What make runs writes nothing to the home folder."""

import os
import subprocess
from pathlib import Path

from nbformat import v4, write

ROOT = Path(__file__).resolve().parents[2]

# What usually leaves something in the home folder.
CELL = """
import matplotlib.pyplot, IPython.paths, jupyter_core.paths, d2lmgpu.machine.cache, os
IPython.paths.locate_profile()
os.makedirs(jupyter_core.paths.jupyter_runtime_dir(), exist_ok=True)
os.makedirs(d2lmgpu.machine.cache.cache(), exist_ok=True)
"""


def make(home, *arguments):
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "MAKE", "MFLAGS"))
    }
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment | {"HOME": str(home)})


def test_running_a_chapter_leaves_the_home_folder_empty(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    write(v4.new_notebook(cells=[v4.new_code_cell(CELL)]), tmp_path / "one.ipynb")
    assert make(home, "run", f"CHAPTER={tmp_path / 'one.ipynb'}").returncode == 0
    assert os.listdir(home) == []


def test_running_no_chapter_says_how(tmp_path, capfd):
    assert make(tmp_path, "run").returncode != 0
    assert "make run CHAPTER=chapters/" in capfd.readouterr().err
