"""Learners' servers as jobs of a real Slurm in the box: asked for in a form, ended with the job."""

import asyncio
import os
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests
from running_hub import PASSWORD, RunningHub, wait_until
from safety import SettingError
from settings import read
from slurm_spawner import CourseSlurmSpawner

sys.path.append(str(Path(__file__).resolve().parents[1] / "cluster"))

from box_traces import SlurmCluster, standing

from d2lmgpu.cluster import box, state

IN_BOX = pytest.mark.skipif(bool(box.missing(True)), reason=f"needs {'; '.join(box.missing(True))}")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm") / "cluster"
    with standing(folder, "--hosts", 2, "--slurm"):
        yield SlurmCluster(folder)


def address_of(slurm):
    addresses = psutil.net_if_addrs()[slurm.state["bridge"]]
    return next(a.address for a in addresses if a.family == socket.AF_INET)


@pytest.fixture(scope="module")
def slurm_hub(slurm, tmp_path_factory):
    settings = {
        "HUB_SPAWNER": "slurm", "HUB_CONNECT_ADDRESS": address_of(slurm), "HUB_ACCOUNTS": "one",
        "HUB_GPUS_PER_LEARNER": "2", state.VARIABLE: str(slurm.folder),
        "SLURM_CONF": str(slurm.folder / "slurm.conf"),
    }  # fmt: skip
    with RunningHub(tmp_path_factory.mktemp("hub"), without_lab=True, **settings) as hub:
        yield hub


def spawn_by_form(hub, session, **wanted):
    page = session.get(f"{hub.url}/hub/spawn", timeout=30)
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"|_xsrf=([^"]+)"', page.text)
    form = {**wanted, "_xsrf": xsrf[1] or xsrf[2]}
    answer = session.post(f"{hub.url}/hub/spawn", data=form, timeout=60)
    return page.text, answer


@IN_BOX
def test_login_form_job_server_stop_and_the_job_is_gone(slurm, slurm_hub):
    session = slurm_hub.login("ada")
    form, answer = spawn_by_form(slurm_hub, session, partition="gpu", gpus="2", minutes="7")
    assert re.findall("<option>(.*?)</option>", form) == ["gpu", "0", "1", "2"]
    assert answer.ok, answer.text
    ready = lambda: slurm_hub.servers().get("ada", {}).get("ready")  # noqa: E731
    wait_until(ready, 120, f"a server as a job; see {slurm_hub.log_path}")
    (job,) = slurm.ask("squeue", "--noheader", "--format=%j %T %P %l %b %N").splitlines()
    assert re.fullmatch(r"course RUNNING gpu 7:00 gres.gpu:2 n[12]", job)
    headers = {"Authorization": f"token {slurm_hub.user_token('ada')}"}
    status = requests.get(f"{slurm_hub.url}/user/ada/api/status", headers=headers, timeout=30)
    assert status.status_code == 200
    slurm_hub.stop_server("ada")
    wait_until(lambda: slurm.left() == [], 10, "the job and its processes are gone")


@IN_BOX
@pytest.mark.parametrize(
    "options",
    [{"gpus": 3}, {"gpus": "2; id"}, {"partition": "nope"}, {"minutes": 0}, {"minutes": "1\nid"},
     {"prologue": "id"}, {"cmd": "id"}, {"partition": "gpu\n#SBATCH --wrap=id"}],
)  # fmt: skip
def test_what_is_no_choice_of_the_form_makes_no_job(slurm, slurm_hub, options):
    answer = slurm_hub.ask("mallory", options)
    assert answer.status_code in (400, 500), answer.text
    wait_until(lambda: "mallory" not in slurm_hub.servers(), 10, "no server")
    assert slurm.jobs() == []


@IN_BOX
def test_a_server_tells_its_port_and_nothing_else(slurm_hub):
    """batchspawner 1.3.0 would take any attribute: the hub's own commands among them."""
    slurm_hub.add("ada")
    headers = {"Authorization": f"token {slurm_hub.user_token('ada')}"}
    url = f"{slurm_hub.url}/hub/api/batchspawner"
    for told in ({"batch_cancel_cmd": "id"}, {"port": 9999}, {"port": "1"}, {}):
        assert requests.post(url, json=told, headers=headers, timeout=30).status_code == 400


def test_what_asks_slurm_gets_nothing_secret_of_the_hub(monkeypatch):
    """It may run under the learner's account, who could read its environment."""
    monkeypatch.setenv("GITHUB_CLIENT_SECRET", "nobody's business")
    with ThreadPoolExecutor() as pool:  # the browser of other tests has a loop in this thread
        told = pool.submit(asyncio.run, CourseSlurmSpawner().run_command("env")).result()
    assert "PATH=" in told and "business" not in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"HUB_SPAWNER": "docker"}, "'local' or 'slurm'"),
        ({"HUB_CONNECT_ADDRESS": "10.0.0.1"}, "is for HUB_SPAWNER=slurm"),
        ({"HUB_SPAWNER": "slurm"}, "HUB_CONNECT_ADDRESS"),
        ({"HUB_SPAWNER": "slurm", "HUB_CONNECT_ADDRESS": "head"}, "not 'head'"),
        ({"HUB_SPAWNER": "slurm", "HUB_CONNECT_ADDRESS": "10.0.0.1"}, "an own account"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, words, tmp_path, monkeypatch):
    monkeypatch.setenv(state.VARIABLE, str(tmp_path))
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(SettingError, match=words):
        read({"HUB_PASSWORD": PASSWORD, **change}, is_root=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    if change.get("HUB_SPAWNER") == "slurm":
        with pytest.raises(SettingError, match="needs sbatch"):
            read({"HUB_PASSWORD": PASSWORD, **change}, is_root=False)
