"""What `make exercises` writes, for the tests of the exercises and of grading."""

import subprocess
import sys

import pytest
from exercise_parts import ROOT


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with it."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run([sys.executable, "tools/exercises.py", folder], cwd=ROOT, check=True)
    return folder
