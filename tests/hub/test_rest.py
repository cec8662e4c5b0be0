"""The lease rules on a real JupyterHub, asked by REST: the form is never seen."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from running_hub import wait_until


def gpus_seen(hub, user):
    return hub.process_of(user).environ()["CUDA_VISIBLE_DEVICES"].split(",")


def test_two_learners_never_share_a_gpu_and_overasking_is_409(empty_hub):
    hub = empty_hub
    with ThreadPoolExecutor() as pool:
        for got in pool.map(lambda user: hub.start_server(user, 2), ["ada", "grace"]):
            assert len(got) == 2
    assert sorted(gpus_seen(hub, "ada") + gpus_seen(hub, "grace")) == [
        "GPU-a",
        "GPU-b",
        "GPU-c",
        "GPU-d",
    ]
    assert hub.process_of("ada").environ()["D2LMGPU_DEVICES"] == "gpu"
    answer = hub.ask("lin", {"gpus": 1})
    assert answer.status_code == 409
    text = "You asked for 1 GPU; 0 of 4 GPUs are free now: "
    assert text in answer.json()["message"]
    for holder in ("ada has held 2 for ", "grace has held 2 for "):
        assert holder in answer.json()["message"]
    # Stopping gives them back at once: the very next request gets them.
    freed = hub.leases()["ada"]
    hub.stop_server("ada")
    assert hub.start_server("lin", 2) == freed


@pytest.mark.parametrize("junk", [{"gpus": "2"}, {"gpus": -1}, {"gpus": True}, {"gpu": 1}, [1]])
def test_junk_is_400(empty_hub, junk):
    answer = empty_hub.ask("mei", junk)
    assert answer.status_code == 400, answer.text
    assert empty_hub.servers() == {}


def test_a_killed_server_gives_its_gpus_back_within_ten_seconds(empty_hub):
    hub = empty_hub
    hub.start_server("ada", 4)
    server = hub.process_of("ada")
    # A training that the learner left running in the background, out of the server's own group.
    left = subprocess.Popen(["sleep", "600"], env=server.environ(), start_new_session=True)
    server.kill()
    killed = time.monotonic()
    wait_until(lambda: not hub.leases(), 10, "the lease has ended")
    print(f"lease back {time.monotonic() - killed:.1f} s after the kill")
    assert left.wait(5) == -9, "what could still hold the GPU is ended too"
    assert not psutil.pid_exists(server.pid)
    assert hub.start_server("grace", 4) == ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]


def test_a_killed_hub_comes_back_with_its_leases(empty_hub):
    hub = empty_hub
    before = hub.start_server("ada", 3)
    server, runtime = hub.process_of("ada"), hub.runtime_folder("ada")
    hub.end(how=9)
    hub.start()
    assert hub.leases() == {"ada": before}
    assert hub.process_of("ada") == server, "the learner's server ran on"
    assert hub.runtime_folder("ada") == runtime and runtime.is_dir()
    assert server.environ()["TMPDIR"] == str(runtime), "temporary files go with the server, too"
    assert hub.ask("grace", {"gpus": 2}).status_code == 409
    hub.stop_server("ada")
    assert not server.is_running()
    assert not runtime.exists()
    assert hub.start_server("grace", 2) == ["GPU-a", "GPU-b"]


def test_a_vanished_gpu_is_not_handed_out(empty_hub):
    hub = empty_hub
    hub.set_gpus("GPU-b", "GPU-d")
    try:
        answer = hub.ask("ada", {"gpus": 4})
        assert answer.status_code == 409
        assert "this machine has 2" in answer.json()["message"]
        assert hub.start_server("ada", 2) == ["GPU-b", "GPU-d"]
    finally:
        hub.set_gpus("GPU-a", "GPU-b", "GPU-c", "GPU-d")
