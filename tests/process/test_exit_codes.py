"""What is said of a process that dies by a signal: the table of *When It Hangs*.

Each dies for real: the third reads where no memory is, the fourth calls abort(), as NCCL's watchdog
does. Python and torchrun say the negative number of the signal, a shell 128 more than the number.
"""

import os
import signal
import subprocess
import sys

import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch

DEATHS = {
    137: "os.kill(os.getpid(), signal.SIGKILL)",
    143: "os.kill(os.getpid(), signal.SIGTERM)",
    139: "ctypes.string_at(0)",
    134: "os.abort()",
}
IMPORTS = "import ctypes, os, signal\n"


@pytest.mark.parametrize("code", DEATHS)
def test_a_shell_says_128_more_than_the_signal_s_number(code, tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(IMPORTS + DEATHS[code])
    command = ["sh", "-c", '"$0" "$1"; echo $?', sys.executable, script]
    assert subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True) == f"{code}\n"
    done = subprocess.run([sys.executable, script], stderr=subprocess.DEVNULL)
    assert done.returncode == 128 - code


@pytest.mark.parametrize("code", sample(1, DEATHS))
def test_torchrun_names_the_signal_and_itself_ends_with_1(code, tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(IMPORTS + DEATHS[code])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", script]
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(torchrun, env=environ, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 1
    assert f"exitcode  : {128 - code} " in done.stderr, done.stderr
    assert f"Signal {code - 128} ({signal.Signals(code - 128).name})" in done.stderr


@pytest.mark.parametrize("code", sample([139], DEATHS))
def test_launch_names_the_signal(code):
    def dies(line):
        import ctypes
        import os
        import signal

        exec(line, {"ctypes": ctypes, "os": os, "signal": signal})

    with pytest.raises(LaunchError, match=f"was killed by {signal.Signals(code - 128).name}"):
        launch(dies, DEATHS[code], num_processes=1)
