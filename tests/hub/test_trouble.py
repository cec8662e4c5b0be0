"""A full disk, a GPU that vanishes: the learner reads what to do, does it, and has lost nothing."""

import json
import re
import subprocess
from urllib.parse import urlencode

import pytest
from learner import ADA, choose, lab_hub, log_in, publish, write_notebook
from pages import edit_cell, wait_for_notebook

NOTEBOOK = "course/lab.ipynb"
SAVE = "window.jupyterapp.commands.execute('docmanager:save')"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The address of a course with one chapter, whose cell asks for the server's GPU."""
    folder = tmp_path_factory.mktemp("org") / "course"
    folder.mkdir()
    source = "answer = 1\nfrom d2lmgpu import torch as d2l\nd2l.try_gpu()"
    write_notebook(folder / "lab.ipynb", [source])
    publish(folder)
    return folder.as_uri()


def launch_link(hub, course):
    query = {"repo": course, "branch": "main", "urlpath": f"lab/tree/{NOTEBOOK}"}
    return f"{hub.url}/hub/user-redirect/git-pull?{urlencode(query)}"


# --- A full disk ---


@pytest.fixture
def small_home(tmp_path):
    """The learner's home on a disk of its own, of 4 MiB."""
    home = tmp_path / "state" / "home" / ADA
    home.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", home]
    subprocess.run(mount, check=True)
    yield home
    subprocess.run(["umount", "--lazy", home], check=True)


def fill(disk):
    """Write a file until the disk is full; returns its path."""
    path = disk / "large.bin"
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    return path


def delete_in_jupyterlab(page, name):
    """What deleting in JupyterLab's file list does, but for the question whether one is sure."""
    page.evaluate("name => window.jupyterapp.serviceManager.contents.delete(name)", name)


def source_on_disk(path):
    return "".join(json.loads(path.read_text())["cells"][1]["source"])


def test_a_full_disk(small_home, tmp_path, course, context):
    notes = small_home / "notes.txt"
    notes.write_text("mine\n")
    fill(small_home)
    with lab_hub(tmp_path, HUB_REPOSITORIES=f"{course}#main") as hub:
        page = context.new_page()
        page.goto(launch_link(hub, course))
        log_in(page, hub)
        assert "Your home folder has only 0 MiB left" in choose(page, gpus=0)
        # The server starts; what the launch link brings has no room, and its log says so.
        # The way on at once: nbgitpuller's page hides it if its stream of events breaks off later.
        page.get_by_role("button", name="Go to the Jupyter server").click()
        link = launch_link(hub, course)
        api = link.replace("hub/user-redirect/git-pull", f"user/{ADA}/git-pull/api")
        assert "No space left on device" in context.request.get(api).text()
        page.wait_for_function("window.jupyterapp?.serviceManager?.isReady")
        delete_in_jupyterlab(page, "large.bin")
        page.goto(launch_link(hub, course))
        wait_for_notebook(page, NOTEBOOK)

        # Full again, this time with an edit that cannot be saved.
        fill(small_home)
        before = source_on_disk(small_home / NOTEBOOK)
        edit_cell(page, 1, before, "answer = 2")
        page.evaluate(f"void {SAVE}")
        dialog = page.locator(".jp-Dialog", has_text="File Save Error")
        dialog.wait_for()
        assert re.search("disk is full|No space left", dialog.text_content())
        assert source_on_disk(small_home / NOTEBOOK) == before
        dialog.locator("button").click()

        delete_in_jupyterlab(page, "large.bin")
        page.evaluate(SAVE)
        assert source_on_disk(small_home / NOTEBOOK) == "answer = 2"
        assert notes.read_text() == "mine\n"


# --- A GPU that vanishes ---


def test_a_gpu_vanishes(tmp_path, course, context):
    with lab_hub(tmp_path, HUB_REPOSITORIES=f"{course}#main") as hub:
        hub.set_gpus("GPU-a", "GPU-b")
        page = context.new_page()
        page.goto(launch_link(hub, course))
        log_in(page, hub)
        hub.set_gpus("GPU-b")  # while the form is shown
        assert "2 of 2 GPUs are free now" in choose(page, gpus=2)
        # The same page again, with the reason, and the choices that there are now.
        page.get_by_text("You asked for 2 GPUs; this machine has 1.").wait_for()
        assert "1 of 1 GPUs is free now" in choose(page, gpus=1)
        wait_for_notebook(page, NOTEBOOK)
        assert hub.leases() == {ADA: ["GPU-b"]}

        hub.set_gpus()  # while the server runs: no framework sees a GPU on this machine
        edit_cell(page, 1, "answer = 1", "answer = 2")
        page.get_by_text("D2LMGPU_DEVICES=gpu, but this framework sees no GPU").first.wait_for()
        page.evaluate(SAVE)
        hub.stop_server(ADA)

        page.goto(launch_link(hub, course))
        page.locator("#spawn_form").wait_for()
        assert "There is no GPU now" in choose(page, gpus=0)
        wait_for_notebook(page, NOTEBOOK)
        home = tmp_path / "state" / "home" / ADA
        assert source_on_disk(home / NOTEBOOK).startswith("answer = 2")
        edit_cell(page, 1, "answer = 2", "answer = 3")
        page.get_by_text("device(type='cpu', index=0)").wait_for()
