"""When a server ends nothing of it is left, its GPUs are free, and the hub answers meanwhile."""

import os
import subprocess
from pathlib import Path
from threading import Thread

import psutil
import pytest
import requests
from processes import kill
from running_hub import RunningHub, wait_until
from soaking import sample

SERVER = Path(__file__).resolve().parents[2] / "hub" / "learner" / "server.py"
FOUR = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")
# A clean-up that takes until the test has opened two pipes, if it has made them, and then fails.
SLOW_AND_BROKEN = """
from pathlib import Path

import spawner

def wait_at(name):  # True if there was a pipe
    pipe = Path({folder!r}, name)
    if pipe.exists():
        pipe.read_bytes()
        pipe.unlink()
        return True

class Groups:
    def make(self, owner, memory_bytes, cpus):
        folder = Path({folder!r}, "group")
        folder.mkdir(exist_ok=True)
        return folder

    def kill(self, owner):
        if wait_at("killing"):
            raise OSError("this kernel ends no group")

    def remove_empty(self):
        pass

remove = spawner.remove

def slow_remove(folder):
    if folder:
        wait_at("removing")
    remove(folder)

spawner.remove = slow_remove
c.GpuLease.groups = Groups()
"""


@pytest.fixture(scope="module")
def broken_hub(tmp_path_factory):
    """A hub whose clean-up waits at ``killing`` and ``removing``, where pipes, and then fails."""
    folder = tmp_path_factory.mktemp("hub")
    more = SLOW_AND_BROKEN.format(folder=str(folder))
    with RunningHub(folder, more, without_lab=True, HUB_ACCOUNTS="one") as running:
        running.set_gpus(*FOUR)
        yield running


def open_when_awaited(hub, pipe):
    """Wait until the hub waits at ``pipe``, see that it answers meanwhile, and let it go on."""

    def end():
        try:
            return os.open(hub.folder / pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None  # nobody reads it yet

    writing = wait_until(end, 30, f"the hub waits at {pipe}")
    try:
        assert requests.get(f"{hub.url}/hub/health", timeout=10).ok
    finally:
        os.close(writing)


def test_a_clean_up_that_is_slow_and_fails_keeps_neither_the_hub_nor_a_gpu(broken_hub):
    hub = broken_hub
    hub.start_server("ada", 4)
    server, runtime = hub.process_of("ada"), hub.runtime_folder("ada")
    # What the broken group does not end, what is marked as the server's still is.
    left = subprocess.Popen(["sleep", "600"], env=server.environ(), start_new_session=True)
    for pipe in ("killing", "removing"):
        os.mkfifo(hub.folder / pipe)
    Thread(target=hub.api, args=("DELETE", "users/ada/server"), daemon=True).start()
    for pipe in ("killing", "removing"):
        open_when_awaited(hub, pipe)
    wait_until(lambda: "ada" not in hub.servers(), 30, "ada's server has stopped")
    assert left.wait(5) == -9
    assert not runtime.exists()
    assert "this kernel ends no group" in hub.log()
    assert hub.start_server("grace", 4) == list(FOUR)


@pytest.mark.parametrize("end", sample(1, ["killed", "stopped"]))
def test_what_hides_its_environment_ends_with_its_server(empty_hub, end):
    """A daemon of the learner's with nothing in its environment and a session of its own."""
    hub = empty_hub
    notes = hub.folder / "state/home/ada"
    notes.mkdir(parents=True, exist_ok=True)
    pid_file = notes / "pid"
    pid_file.unlink(missing_ok=True)
    (notes / ".bash_profile").write_text(
        f"env -i setsid sh -c 'echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file};"
        " exec sleep 600' < /dev/null > /dev/null 2>&1 &\n"
    )
    hub.start_server("ada", 1)
    answer = requests.post(
        f"{hub.url}/user/ada/api/terminals",
        headers={"Authorization": f"token {hub.user_token('ada')}"},
        timeout=30,
    )
    assert answer.ok, answer.text
    wait_until(pid_file.exists, 30, "the daemon has started")
    daemon = psutil.Process(int(pid_file.read_text()))
    if end == "stopped":
        hub.stop_server("ada")
    else:
        keeper = hub.process_of("ada")
        (server,) = [
            process
            for process in (keeper, *keeper.children())
            if process.cmdline()[1:2] == [str(SERVER)]
        ]
        server.kill()
        wait_until(lambda: not hub.leases(), 15, "the lease has ended")
    try:
        assert not daemon.is_running()
    finally:
        kill([daemon])
