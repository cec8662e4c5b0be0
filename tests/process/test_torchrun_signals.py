"""What torchrun makes of a scheduler's warning: SIGTERM is handed on, USR1 kills torchrun alone."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from processes import asked, kill, runs
from soaking import soaked

WORKER = """
import os, signal

def told(number, frame):
    print("worker got", signal.Signals(number).name, flush=True)
    raise SystemExit

for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, told)
print("worker", os.getpid(), flush=True)
while True:
    signal.pause()
"""
ALL = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"


@pytest.fixture
def torchrun(tmp_path):
    """Start torchrun with one worker and some options: (its process, the worker's)."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    started = []

    def start(*options):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *options]
        process = subprocess.Popen(
            [*command, str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        started.append(process)
        worker = psutil.Process(int(process.stdout.readline().split()[1]))
        started.append(worker)
        return process, worker

    yield start
    kill(started)
    for process in started:
        process.wait()


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (signal.SIGUSR1, (f"--signals-to-handle={ALL}",)),
        *soaked((signal.SIGTERM, ()), (signal.SIGTERM, (f"--signals-to-handle={ALL}",))),
    ],
)
def test_a_signal_that_torchrun_handles_reaches_the_worker(torchrun, number, options):
    process, worker = torchrun(*options)
    process.send_signal(number)
    assert process.stdout.readline() == f"worker got {number.name}\n"
    process.wait(timeout=60)
    assert not asked(lambda: runs(worker))


def test_usr1_kills_torchrun_and_leaves_its_worker_uninformed(torchrun):
    process, worker = torchrun()
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=60) == -signal.SIGUSR1
    assert runs(worker)
    worker.terminate()
    assert process.stdout.readline() == "worker got SIGTERM\n", "USR1 had not reached it"
