"""From a built page to a finished run: rocket, login, GPU choice, clone, JupyterLab, lab, Stop."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from lab_notebook import CELLS
from learner import ADA, choose, lab_hub, log_in, publish, wait_for_notebook, write_notebook
from pages import Lab, run_all
from running_hub import ROOT

CHAPTER, REFERENCE = "chapters/lab/training-lab.ipynb", "chapters/reference/devices.md"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course's repository: a chapter with a lab and one that is a Markdown file, with the
    project's own book settings."""
    folder = tmp_path_factory.mktemp("org") / "course"
    for path in (CHAPTER, REFERENCE):
        (folder / path).parent.mkdir(parents=True)
    write_notebook(folder / CHAPTER, CELLS)
    shutil.copy(ROOT / REFERENCE, folder / REFERENCE)
    shutil.copy(ROOT / "_config.yml", folder)
    second = {"file": REFERENCE.removesuffix(".md")}
    toc = {"format": "jb-book", "root": CHAPTER.removesuffix(".ipynb"), "chapters": [second]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    publish(folder)
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    with lab_hub(tmp_path_factory.mktemp("hub"), HUB_SIMULATED_GPUS="4") as running:
        yield running


@pytest.fixture(scope="module")
def html(course, hub, tmp_path_factory):
    """The folder of the pages, built with the project's settings but for the two addresses that
    whoever publishes the course is told to change."""
    book = tmp_path_factory.mktemp("book") / "course"
    shutil.copytree(course, book, ignore=shutil.ignore_patterns(".git"))
    for name in ("assets", "references.bib"):
        (book / name).symlink_to(ROOT / name)
    settings = yaml.safe_load((book / "_config.yml").read_text())
    settings["execute"] = {"execute_notebooks": "off"}
    settings["repository"]["url"] = course.as_uri()
    settings["launch_buttons"]["jupyterhub_url"] = hub.url
    (book / "_config.yml").write_text(yaml.safe_dump(settings))
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-W", "-n", "-q", book]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return book / "_build/html"


def press_the_rocket(context, built, path):
    """Open the page of the chapter ``path`` and press its rocket; returns the page that opens."""
    page = context.new_page()
    page.goto((built / path).with_suffix(".html").as_uri())
    page.locator(".dropdown-launch-buttons > button").click()
    with context.expect_page() as opened:
        page.locator(".dropdown-launch-buttons a", has_text="JupyterHub").click()
    return opened.value


def test_from_the_rocket_to_a_stopped_run(html, hub, context):
    page = press_the_rocket(context, html, CHAPTER)
    log_in(page)
    assert "4 of 4 simulated GPUs" in choose(page, gpus=2)
    wait_for_notebook(page, f"course/{CHAPTER}")
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    assert hub.process_of(ADA).environ()["D2LMGPU_DEVICES"] == "cpu:2"

    lab.devices.focus()
    lab.devices.press("ArrowUp")
    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    assert lab.cells(0)[1] == "2"
    lab.choose(lab.epochs, 500)
    lab.run.click()
    lab.wait_for_points("train loss", 4)  # the run before had three
    lab.stop.click()
    lab.expect(".lab-message", "Stopped.")

    # The next chapter, which is a Markdown file: no login and no choice any more.
    page = press_the_rocket(context, html, REFERENCE)
    wait_for_notebook(page, f"course/{REFERENCE}")
    hub.stop_server(ADA)
    assert hub.leases() == {}
