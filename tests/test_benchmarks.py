"""What make bench prints: its ratios, not the warnings of what it is compared with."""

import os
import subprocess
import sys

import pytest

from benchmarks.__main__ import QUIET


@pytest.mark.parametrize(
    "module, shown",
    [
        ("d2l.torch", False),
        ("d2l.mxnet", False),
        ("torch.utils.data.dataloader", False),
        ("d2lmgpu.torch.training", True),
        ("benchmarks.torch_loops", True),
    ],
)
def test_only_our_own_warnings_are_shown(module, shown):
    program = (
        "import subprocess, sys, warnings\n"
        "if len(sys.argv) > 1: sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))\n"
        f"warnings.warn_explicit('look', UserWarning, 'a.py', 1, {module!r})"
    )
    command = [sys.executable, "-c", program, program]  # also in a process that it starts
    done = subprocess.run(command, env=os.environ | QUIET, capture_output=True, text=True)
    assert done.returncode == 0 and ("look" in done.stderr) == shown
