"""The break-it lab without a browser: hosts, two harms, training that goes on, and nothing left."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from json_types import fault
from processes import commands

from d2lmgpu.course.breaking import forecast, keeper
from d2lmgpu.course.breaking.messages import State
from d2lmgpu.course.breaking.training import Training
from d2lmgpu.course.breaking.view import break_it_lab
from d2lmgpu.process.cluster import inside

LIMIT = 240
PRESSED = [  # all buttons, each that mends after its harm; the host, which stays dead, at last
    name
    for harm in sorted(forecast.HARMS, key="host".__eq__)
    for name in (harm, forecast.MENDED.get(harm))
    if name
]


def until(condition):
    """What ``found()`` gives, once it is something."""
    deadline = time.monotonic() + LIMIT
    while not (result := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return result


def traces():
    """The processes of the lab, and the namespaces of networks but this one."""
    pids, mine = set(), os.readlink("/proc/self/ns/net")
    for process, words in commands().items():
        try:
            in_namespace = os.readlink(f"/proc/{process.pid}/ns/net") == mine
        except OSError:
            continue
        if keeper.COMMAND[-1] in words or (not in_namespace and "/dev/shm/c" in words):
            pids.add(process.pid)
    return pids


@pytest.fixture
def lab():
    """A lab that trains on all hosts; at the end nothing is left of it."""
    before, files = traces(), set(os.listdir("/dev/shm"))
    lab = break_it_lab(num_hosts=3)
    lab.start()
    until(lambda: "3 ranks" in lab.message or lab.process.poll())  # the first two may begin alone
    yield lab
    lab.stop()
    assert traces() <= before
    assert not {"cluster", "checkpoints", "log"} & (set(os.listdir("/dev/shm")) - files)


def harmed(lab, name):
    """What the harm has cost, once training went on."""
    until(lambda: name in lab.offered() or lab.process.poll())
    assert lab.runs, lab.message
    lab.press(name)
    return until(lambda: lab.done() or lab.process.poll())


def rows(outcome):
    return {label: (predicted, measured) for label, _, predicted, measured in outcome["rows"]}


@pytest.mark.soak
def test_after_every_button_the_training_goes_on_and_a_slow_link_slows_it(lab):
    assert {*PRESSED} == {*forecast.HARMS, *forecast.MENDS}
    costs = {name: rows(harmed(lab, name)) for name in PRESSED}
    assert lab.runs, lab.message
    assert [outcome["name"] for outcome in lab.outcomes] == PRESSED
    assert all(measured is not None for cost in costs.values() for _, measured in cost.values())
    rate, slow = costs["slow"]["an update afterwards"]
    _, again = costs["quicken"]["an update afterwards"]
    assert slow > 0.9 * rate, "no link is faster than its rate"
    assert again < slow


def test_two_harms_and_the_training_goes_on(lab):
    killed, filled = harmed(lab, "worker"), harmed(lab, "fill")
    cost = rows(killed)
    for predicted, measured in cost.values():
        assert predicted is not None and measured is not None
    assert cost["images lost in the epoch"] == cost["images counted twice"] == (0, 0)
    assert cost["until training is where it was"][1] == pytest.approx(
        sum(cost[part][1] for part in list(cost)[:4]), abs=0.01
    )
    assert cost["images computed again"][1] == 120 * cost["updates repeated"][1] <= 20 * 120
    assert set(killed["lanes"]) == {"n1", "n2", "n3"}
    for lane in killed["lanes"].values():
        spans = [what for what, _, _ in lane if what != "saves"]
        assert spans[0] in ("trains", "starts Python") and spans[-1] == "trains"
        assert "starts Python" in spans and all(a <= b for _, a, b in lane)
    state = {name: getattr(lab, name) for name in lab.names}
    assert fault(state, State) is None
    assert rows(filled)["updates repeated"] == (0, 0), "a full disk has stopped it"
    assert "free" in until(lab.offered) and "fill" not in lab.offered()


def test_what_a_worker_starts_is_no_worker(tmp_path):
    """It has the worker's command until it is another program; a torchrun of this machine."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time\n"
        "os.write(1, b'%d %d\\n' % (os.getpid(), os.fork()))\n"  # by the worker and by its child
        "time.sleep(600)"
    )

    class OwnProcesses(inside.Hosts):
        def __init__(self):
            pass

        def commands(self, host):
            return {p.pid: p.cmdline() for p in psutil.Process().children(recursive=True)}

    there = Training.__new__(Training)
    there.script, there.hosts = (script,), OwnProcesses()
    torchrun = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", script],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pairs = (map(int, line.split()) for line in torchrun.stdout)
        worker, child = next((pid, child) for pid, child in pairs if child)
        assert {worker, child, torchrun.pid} == set(there.of_training("here"))
        assert there.workers("here") == {worker: worker}
    finally:
        torchrun.terminate()
        torchrun.communicate()


@pytest.mark.parametrize("whom", ["kernel", "keeper"])
def test_who_is_killed_takes_all_along(whom):
    """Hosts, processes and links are gone at once, with the namespaces."""
    before = traces()
    code = (
        "import sys, time\nfrom d2lmgpu.course.breaking.view import break_it_lab\n"
        "lab = break_it_lab(2)\nlab.start()\n"
        "while 'Python starts' not in lab.message: time.sleep(0.05)\n"
        "print(lab.process.pid, flush=True)\ntime.sleep(600)"
    )
    kernel = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(kernel.stdout.readline())
    assert len(traces() - before) > 3, "a keeper, a launcher and two hosts"
    os.kill({"kernel": kernel.pid, "keeper": pid}[whom], signal.SIGKILL)
    until(lambda: traces() <= before)
    kernel.kill()
    kernel.communicate()
