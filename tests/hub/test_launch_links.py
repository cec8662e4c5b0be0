"""From a built page to a finished run: rocket, login, GPU choice, clone, JupyterLab, lab, Stop.

Nothing is edited: the pages, the hub and its repository are those of a checkout as it comes. Only
the GPUs are simulated, as README.md suggests for a machine without any.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from exercise_notebook import NOTEBOOK, answer_first
from lab_notebook import CELLS
from learner import ADA, choose, lab_hub, log_in, write_notebook
from pages import Lab, run_all, wait_for_notebook
from running_hub import ROOT

HERE = "hands-on-multi-gpu"  # the learner's folder: the last part of the repository's address
CHAPTER, REFERENCE = "chapters/lab/training-lab.ipynb", "chapters/reference/devices.md"
EXERCISES = "chapters/reference/exercises.md"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A downloaded checkout, without git: a first page, a chapter with a lab and one that is a
    Markdown file, the exercises of a part, and the project's own hub and settings."""
    folder = tmp_path_factory.mktemp("downloads") / "course"
    for path in (CHAPTER, REFERENCE):
        (folder / path).parent.mkdir(parents=True)
    write_notebook(folder / CHAPTER, CELLS)
    (folder / "chapters/intro.md").write_text(
        "# A course\n\n1. [Training](lab/training-lab.ipynb)\n2. [Devices](reference/devices.md)\n"
    )
    shutil.copy(ROOT / REFERENCE, folder / REFERENCE)
    (folder / NOTEBOOK).parent.mkdir()
    shutil.copy(ROOT / NOTEBOOK, folder / NOTEBOOK)
    first_part, _, _ = (ROOT / EXERCISES).read_text().partition("(exercises-scratch)=")
    (folder / EXERCISES).write_text(first_part)
    shutil.copytree(ROOT / "hub", folder / "hub", ignore=shutil.ignore_patterns("node_modules"))
    (folder / "hub/node_modules").symlink_to(ROOT / "hub/node_modules")
    for name in ("_config.yml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    files = (CHAPTER, REFERENCE, EXERCISES)
    chapters = [{"file": str(Path(path).with_suffix(""))} for path in files]
    toc = {"format": "jb-book", "root": "chapters/intro", "chapters": chapters}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    return folder


@pytest.fixture(scope="module")
def hub(course, tmp_path_factory):
    """The hub of that checkout, at the address to which its pages' rockets lead."""
    (address,) = re.findall(r'jupyterhub_url: "(.*?)"', (course / "_config.yml").read_text())
    settings = {"root": course, "unedited": True, "HUB_SIMULATED_GPUS": "4"}
    with lab_hub(tmp_path_factory.mktemp("hub"), **settings) as running:
        assert f"The hub will be at {address}/\n" in running.log()
        yield running


@pytest.fixture(scope="module")
def pages(course, tmp_path_factory):
    """The address of the pages, built with the project's settings and served as by ``make serve``;
    the chapters are not executed."""
    book = tmp_path_factory.mktemp("book") / "course"
    shutil.copytree(course, book, ignore=shutil.ignore_patterns("hub"))
    for name in ("assets", "d2lmgpu", "references.bib", "tools"):
        (book / name).symlink_to(ROOT / name)
    settings = yaml.safe_load((book / "_config.yml").read_text())
    settings["execute"] = {"execute_notebooks": "off"}
    # Links to pages that are not in this course.
    settings["sphinx"]["config"]["suppress_warnings"] = [
        "myst.xref_missing", "ref.term", "ref.doc", "ref.ref",
    ]  # fmt: skip
    (book / "_config.yml").write_text(yaml.safe_dump(settings))
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-W", "-n", "-q", book]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1"]
    command += ["--directory", book / "_build/html", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield re.search(r"http://\S+/", server.stdout.readline())[0]
        server.terminate()


def press_the_rocket(context, pages, path):
    """Open the page of the chapter ``path`` and press its rocket; returns the page that opens."""
    page = context.new_page()
    page.goto(pages + str(Path(path).with_suffix(".html")))
    page.locator(".dropdown-launch-buttons > button").click()
    with context.expect_page() as opened:
        page.locator(".dropdown-launch-buttons a", has_text="JupyterHub").click()
    return opened.value


def test_from_the_rocket_to_a_stopped_run(pages, hub, context):
    page = press_the_rocket(context, pages, CHAPTER)
    log_in(page, hub)
    assert "4 of 4 simulated GPUs" in choose(page, gpus=2)
    wait_for_notebook(page, f"{HERE}/{CHAPTER}")
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
    page = press_the_rocket(context, pages, REFERENCE)
    wait_for_notebook(page, f"{HERE}/{REFERENCE}")

    # The exercises: from the link on their page to the first that is correct.
    page = context.new_page()
    page.goto(pages + EXERCISES.replace(".md", ".html"))
    page.locator("a.launch").first.click()
    wait_for_notebook(page, f"{HERE}/{NOTEBOOK}")
    answer_first(page)
    hub.stop_server(ADA)
    assert hub.leases() == {}
