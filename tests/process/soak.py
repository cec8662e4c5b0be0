"""Fifty interruptions and thirty kills leave nothing: ``pytest -s tests/process/soak.py``.

Half of them hit a ``launch``, half a run of the lab, at random moments; each worker has a detached
child, an open port and a temporary file. Whoever is killed, alone or with the caller: afterwards
there is no process, no folder, and a caller that lives runs again.
"""

import random
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from processes import below, kill

INTERRUPTIONS, KILLS, SECONDS = 25, 15, 120
VICTIMS = [
    ("caller",),
    ("guard",),
    ("supervisor",),
    ("worker",),
    ("caller", "guard"),
    ("caller", "supervisor"),
    ("caller", "worker"),
]

WORK = """
import sys

def work():
    import os, socket, tempfile, time
    tempfile.mkdtemp()
    port = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
"""
LAUNCH = """
from d2lmgpu.launch import LaunchError, launch

def worker():
    import time
    work()
    print("ready", flush=True)
    time.sleep(1000)

while sys.stdin.readline():
    try:
        print("started", flush=True)
        launch(worker, num_processes=2)
    except (KeyboardInterrupt, LaunchError):
        print("ended", flush=True)
"""
LAB = """
from d2lmgpu.lab import runner
from d2lmgpu.lab.pool import POOL
from d2lmgpu.process.events import report

def train(num_gpus, batch_size, lr):
    import time
    work()
    report("point")
    time.sleep(1000)

lab = runner.Runner(lambda event: event["event"] == "point" and print("ready", flush=True))
while sys.stdin.readline():
    lab.start(train, num_gpus=1, batch_size=8, lr=0.1)
    print("started", flush=True)
    sys.stdin.readline()
    lab.stop()
    lab.wait()
    POOL.end_spare()
    print("ended", flush=True)
"""


class Caller:
    """A program that launches or runs a lab, again and again, and what is below it."""

    def __init__(self, program):
        self.program = program
        code = textwrap.dedent(WORK + program)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def tell(self, line="\n"):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def until(self, line):
        assert any(text.strip() == line for text in self.process.stdout), f"no {line!r}"

    def start(self):
        self.tell()
        self.until("started")

    def interrupt(self):
        if self.program is LAUNCH:
            self.process.send_signal(signal.SIGINT)
        else:
            self.tell()
        self.until("ended")

    def chain(self):
        """The processes by role: caller, guard, supervisor and one worker."""
        caller = psutil.Process(self.process.pid)
        (guard,) = caller.children()
        supervisor, workers = below(guard)
        roles = ("caller", "guard", "supervisor", "worker")
        return dict(zip(roles, (caller, guard, supervisor, workers[0]), strict=True))

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=[LAUNCH, LAB], ids=["launch", "lab"])
def program(request):
    return request.param


def test_interruptions_leave_nothing(traces, program):
    chance, caller = random.Random(0), Caller(program)
    for i in range(INTERRUPTIONS):
        caller.start()
        if i % 2:
            caller.until("ready")
        else:
            time.sleep(2 * chance.random())
        caller.interrupt()
        traces.assert_none(but=[caller.process.pid], seconds=5)
    caller.end()
    print(f"\n{INTERRUPTIONS} interruptions left nothing")


def test_kills_leave_nothing(traces, program):
    chance, latest = random.Random(0), 0
    for i in range(KILLS):
        victims, caller = VICTIMS[i % len(VICTIMS)], Caller(program)
        caller.start()
        caller.until("ready")
        chain = caller.chain()
        kill(chain[role] for role in chance.sample(victims, len(victims)))
        killed = time.monotonic()
        if "caller" not in victims:
            if program is LAB:
                caller.tell()
            caller.until("ended")
        traces.assert_none(but=[caller.process.pid], seconds=SECONDS)
        latest = max(latest, time.monotonic() - killed)
        caller.end()
    print(f"\n{KILLS} kills left nothing, after at most {latest:.1f} s")
