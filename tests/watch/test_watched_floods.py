"""Whatever a watched script says, the process that runs it stays small, and its answer short."""

import json
import subprocess
import sys

import pytest
from soaking import sample

PROGRAM = """
import json, resource, sys
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check.run import check
from d2lmgpu.watch.explain.script import explain_script

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000

before = peak()
try:
    {"check": check, "explain": explain_script}[sys.argv[1]]("script.py")
except WatchError as error:
    print(json.dumps({"grown": peak() - before, "said": str(error)}))
"""
MB = 10**6
SCRIPTS = {  # what is said without end -> (the script, words that the answer must hold)
    "a reason": (f"raise ValueError('cause ' + {100 * MB} * 'x')", "ValueError: cause x"),
    "a reason of an exit": (f"import sys\nsys.exit({100 * MB} * 'x')", "exit code 1: "),
    "a line": (f"import os, sys\nos.write(1, {100 * MB} * b'x')\nsys.exit(7)", "exit code 7: "),
    "a child's line": (
        "import subprocess, sys\n"
        f"child = 'import os; [os.write(2, 5000 * chr(120).encode()) for _ in range({MB // 50})]'\n"
        "subprocess.run([sys.executable, '-c', child])\nraise ValueError('the cause')",
        "ValueError: the cause",
    ),
    "all lines": ("import sys\nprint('line\\n' * 10**7)\nsys.exit(7)", "exit code 7: line"),
}


@pytest.mark.parametrize("command", sample(1, ["check", "explain"]))
@pytest.mark.parametrize("kind", SCRIPTS)
def test_of_what_is_said_without_end_a_part_is_told(tmp_path, command, kind):
    script, words = SCRIPTS[kind]
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, command], cwd=tmp_path, capture_output=True, text=True
    )
    report = json.loads(done.stdout)
    assert words in report["said"] and len(report["said"]) < 3000
    assert report["grown"] <= 50
