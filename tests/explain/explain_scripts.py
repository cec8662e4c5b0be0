"""The scripts that are explained, and what `d2lmgpu explain --json` says of one."""

import json
import subprocess
import sys
from pathlib import Path

from d2lmgpu.watch.explain.answer import OUTCOMES

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
FAIR = {"small-batch", "slow-exchange"}  # of a twin whose second device gives little


def cause_of(script):
    """What is wrong with a script, by its name."""
    return script.stem.rpartition("_")[0]


def explained(script, *arguments):
    """The answer as a dict; the command must not fail."""
    command = [sys.executable, "-m", "d2lmgpu", "explain", "--json", "--", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    report = json.loads(done.stdout)
    assert done.returncode == OUTCOMES[report["outcome"]] < 2, done.stderr
    return report
