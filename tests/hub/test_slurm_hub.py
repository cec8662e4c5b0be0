"""Learners' servers as jobs of a real Slurm in the box: from a page's rocket to the job's end."""

import asyncio
import os
import pwd
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests
from launching import CHAPTER, FOLDER, press_the_rocket
from learner import ADA, lab_hub, log_in
from open_folder import open_folder
from own_accounts import GROUP, learners_group
from pages import Lab, run_all, wait_for_notebook
from processes import asked
from running_hub import PASSWORD, RunningHub, wait_until
from safety import SettingError
from settings import read
from slurm_spawner import CourseSlurmSpawner

sys.path.append(str(Path(__file__).resolve().parents[1] / "cluster"))

from box_traces import SlurmCluster, standing

from d2lmgpu.process.cluster import state

MEI = "d2lmgpu-mei"
IN_BOX = pytest.mark.needs("slurm")


@pytest.fixture(scope="module")
def slurm():
    with open_folder("slurm") as above:
        above.chmod(0o700)
        folder = above / "cluster"
        with standing(folder, "--hosts", 2, "--slurm"):
            yield SlurmCluster(folder)


def address_of(slurm):
    addresses = psutil.net_if_addrs()[slurm.state["bridge"]]
    return next(a.address for a in addresses if a.family == socket.AF_INET)


def settings_for(slurm):
    return {
        "HUB_SPAWNER": "slurm",
        "HUB_CONNECT_ADDRESS": address_of(slurm),
        "HUB_GPUS_PER_LEARNER": "2",
        state.VARIABLE: str(slurm.folder),
        "SLURM_CONF": str(slurm.folder / "slurm.conf"),
    }


@pytest.fixture(scope="module")
def slurm_hub(slurm, course, tmp_path_factory):
    """At the address to which the rockets of the pages lead."""
    settings = {"root": course, "unedited": True, "HUB_ACCOUNTS": "one", **settings_for(slurm)}
    with lab_hub(tmp_path_factory.mktemp("hub"), **settings) as hub:
        yield hub


@IN_BOX
def test_from_the_rocket_by_a_job_to_its_end(slurm, slurm_hub, pages, context):
    page = press_the_rocket(context, pages, CHAPTER)
    log_in(page, slurm_hub)
    form = page.locator("#spawn_form")
    form.locator("[type=submit]").wait_for()  # it comes last
    assert form.locator("option").all_text_contents() == ["gpu", "0", "1", "2"]
    page.select_option("#partition", "gpu")
    page.select_option("#gpus", "2")
    page.fill("#minutes", "7")
    form.locator("[type=submit]").click()
    wait_for_notebook(page, f"{FOLDER}/{CHAPTER}")
    (job,) = slurm.ask("squeue", "--noheader", "--format=%j %T %P %l %b %N").splitlines()
    assert re.fullmatch(r"course RUNNING gpu 7:00 gres.gpu:2 n[12]", job)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    lab.choose(lab.epochs, 500)
    lab.run.click()
    lab.wait_for_points("train loss", 4)
    lab.stop.click()
    lab.expect(".lab-message", "Stopped.")
    page.goto(f"{slurm_hub.url}/hub/home")
    page.click("#stop")
    page.locator("#stop").wait_for(state="hidden")
    wait_until(lambda: ADA not in slurm_hub.servers(), 60, "the server has ended")
    assert slurm.left_at_last() == []


@IN_BOX
@pytest.mark.parametrize(
    "options",
    [
        {"gpus": 3},
        {"gpus": "2; id"},
        {"partition": "nope"},
        {"minutes": 0},
        {"minutes": "1\nid"},
        {"prologue": "id"},
        {"cmd": "id"},
        {"partition": "gpu\n#SBATCH --wrap=id"},
    ],
)
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
    for answer in ({"batch_cancel_cmd": "id"}, {"port": 9999}, {"port": "1"}, {}):
        assert requests.post(url, json=answer, headers=headers, timeout=30).status_code == 400


@pytest.fixture
def for_accounts(slurm):
    """The box is root's alone; this opens it as a cluster is, its keys not."""
    opened = [slurm.folder, slurm.folder.parent]
    for folder in opened:
        folder.chmod(0o711)
    yield slurm
    for folder in opened:
        folder.chmod(0o700)


@IN_BOX
@pytest.mark.needs("root", "useradd")
def test_a_job_runs_under_the_learner_s_own_account(for_accounts, tmp_path_factory, python):
    slurm = for_accounts
    settings = {
        "HUB_AUTH": "null",
        "HUB_USERS": MEI,
        "HUB_ACCOUNTS": "own",
        "HUB_GROUP": GROUP,
        "HUB_CREATE_ACCOUNTS": "1",
        "HUB_PYTHON": python,
    }
    with learners_group(MEI):
        with RunningHub(
            tmp_path_factory.mktemp("hub"), without_lab=True, **settings, **settings_for(slurm)
        ) as hub:
            answer = hub.ask(MEI, {"gpus": 1})
            assert answer.ok, answer.text
            wait_until(lambda: hub.servers().get(MEI, {}).get("ready"), 120, "a server as a job")
            assert slurm.ask("squeue", "--noheader", "--format=%u %b") == f"{MEI} gres:gpu:1"
            accounts = {asked(p.username) for n in ("n1", "n2") for p in slurm.processes(n)}
            assert MEI in accounts
            assert hub.ask("daemon", {}).status_code == 403  # no account of the learners' group
            hub.stop_server(MEI)
            assert slurm.left_at_last() == []
        log = Path(pwd.getpwnam(MEI).pw_dir, ".course-server.log")
        assert log.owner() == MEI


def test_what_asks_slurm_gets_nothing_secret_of_the_hub(monkeypatch):
    """It may run under the learner's account, who could read its environment."""
    monkeypatch.setenv("GITHUB_CLIENT_SECRET", "nobody's business")
    with ThreadPoolExecutor() as pool:  # the browser of other tests has a loop in this thread
        output = pool.submit(asyncio.run, CourseSlurmSpawner().run_command("env")).result()
    assert "PATH=" in output and "business" not in output


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
