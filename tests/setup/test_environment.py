"""The suite runs in an environment of its own, whatever the shell sets from which it is started."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_suite_sees_only_what_is_named():
    shell = {"PYTHONUNBUFFERED": "1", "OTHER": "1", "OPENBLAS_CORETYPE": "Haswell", "CI": "true"}
    target = ["test-hub", "PYTHON=printenv #", "-o", "setup"]  # what pytest would see
    made = subprocess.run(
        ["make", "--silent", *target],
        cwd=ROOT,
        env=os.environ | shell,
        capture_output=True,
        text=True,
    )
    seen = dict(line.split("=", 1) for line in made.stdout.splitlines())
    assert "PYTHONUNBUFFERED" not in seen and "OTHER" not in seen
    assert (seen["OPENBLAS_CORETYPE"], seen["CI"]) == ("Haswell", "true")
    assert seen["PATH"] == os.environ["PATH"] and seen["HOME"] == os.environ["HOME"]
    assert seen["MPLCONFIGDIR"] == str(ROOT / ".cache" / "matplotlib"), "which the Makefile sets"
