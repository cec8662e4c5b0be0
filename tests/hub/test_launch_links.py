"""From a built page to a finished run: rocket, login, GPU choice, clone, JupyterLab, lab, Stop."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from running_hub import PASSWORD, ROOT, RunningHub

sys.path.append(str(ROOT / "tests/browser"))  # the lab's notebook and the steps of its reader

from lab_notebook import CELLS
from pages import READY, Lab, run_all
from servers import LAB_SETTINGS, SECONDS


def git(*arguments, cwd):
    identity = ["-c", "user.name=Course", "-c", "user.email=course@example.org"]
    subprocess.run(["git", *identity, *map(str, arguments)], cwd=cwd, check=True)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course's repository: one chapter with a lab, and the project's own book settings."""
    folder = tmp_path_factory.mktemp("org") / "course"
    folder.mkdir()
    cells = [nbformat.v4.new_markdown_cell("# A chapter")]
    cells += [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "lab.ipynb")
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", "lab.ipynb", cwd=folder)
    git("commit", "-q", "-m", "A chapter", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with four simulated GPUs, whose JupyterLab lets a test wait for it."""
    folder = tmp_path_factory.mktemp("hub")
    lab_settings = folder / "jupyter" / "labconfig"
    lab_settings.mkdir(parents=True)
    for name, content in LAB_SETTINGS.items():
        (lab_settings / name).write_text(json.dumps(content))
    more = (
        f"c.Spawner.environment['JUPYTER_CONFIG_PATH'] = {str(lab_settings.parent)!r}\n"
        "c.Spawner.args.append('--LabApp.expose_app_in_browser=True')\n"
    )
    with RunningHub(
        folder, more, HUB_ACCOUNTS="one", HUB_SIMULATED_GPUS="4", HUB_USERS="ada"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def built_page(course, hub, tmp_path_factory):
    """The chapter as a page, built with the project's settings and this hub's launch button."""
    book = tmp_path_factory.mktemp("book")
    shutil.copy(course / "lab.ipynb", book)
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    settings["execute"] = {"execute_notebooks": "off"}
    settings["repository"] = {"url": course.as_uri(), "branch": "main", "path_to_book": ""}
    settings["launch_buttons"] = {"notebook_interface": "jupyterlab", "jupyterhub_url": hub.url}
    sphinx = settings["sphinx"]["config"]
    sphinx.update(html_static_path=[], nb_ipywidgets_js={}, bibtex_bibfiles=[])
    sphinx.setdefault("html_theme_options", {})["repository_provider"] = "github"
    (book / "_config.yml").write_text(yaml.safe_dump(settings))
    (book / "_toc.yml").write_text("format: jb-book\nroot: lab\n")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-q", book]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return (book / "_build/html/lab.html").as_uri()


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


def test_from_the_rocket_to_a_stopped_run(built_page, hub, course, context):
    page = context.new_page()
    page.goto(built_page)
    page.locator(".dropdown-launch-buttons > button").click()
    with context.expect_page() as opened:
        page.locator(".dropdown-launch-buttons a", has_text="JupyterHub").click()
    page = opened.value

    page.fill("#username_input", "ada")
    page.fill("#password_input", PASSWORD)
    page.click("#login_submit")

    assert "4 of 4 simulated GPUs" in page.locator("#spawn_form").text_content()
    page.select_option("#gpus", "2")
    page.click("#spawn_form [type=submit]")

    # nbgitpuller clones, then opens the chapter.
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.context?.path === 'course/lab.ipynb'"
    )
    page.evaluate(READY)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    assert hub.process_of("ada").environ()["D2LMGPU_DEVICES"] == "cpu:2"

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
    hub.stop_server("ada")
    assert hub.leases() == {}
