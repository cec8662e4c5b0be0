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


CHAPTER, REFERENCE = "chapters/lab/training-lab.ipynb", "chapters/reference/devices.md"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course's repository: a chapter with a lab and one that is a Markdown file, with the
    project's own book settings."""
    folder = tmp_path_factory.mktemp("org") / "course"
    for path in (CHAPTER, REFERENCE):
        (folder / path).parent.mkdir(parents=True)
    cells = [nbformat.v4.new_markdown_cell("# A chapter")]
    cells += [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / CHAPTER)
    shutil.copy(ROOT / REFERENCE, folder / REFERENCE)
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "_toc.yml").write_text(
        yaml.safe_dump({
            "format": "jb-book",
            "root": CHAPTER.removesuffix(".ipynb"),
            "chapters": [{"file": REFERENCE.removesuffix(".md")}],
        })
    )  # fmt: skip
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "-q", "-m", "Two chapters", cwd=folder)
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
        f"c.Spawner.environment['JUPYTER_CONFIG_PATH'] += ':' + {str(lab_settings.parent)!r}\n"
        "c.Spawner.args.append('--LabApp.expose_app_in_browser=True')\n"
    )
    with RunningHub(
        folder, more, HUB_ACCOUNTS="one", HUB_SIMULATED_GPUS="4", HUB_USERS="ada"
    ) as running:
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


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


def press_the_rocket(context, built, path):
    """Open the page of the chapter ``path`` and press its rocket; returns the page that opens."""
    page = context.new_page()
    page.goto((built / path).with_suffix(".html").as_uri())
    page.locator(".dropdown-launch-buttons > button").click()
    with context.expect_page() as opened:
        page.locator(".dropdown-launch-buttons a", has_text="JupyterHub").click()
    return opened.value


def log_in_and_choose(page, gpus):
    page.fill("#username_input", "ada")
    page.fill("#password_input", PASSWORD)
    page.click("#login_submit")
    assert "4 of 4 simulated GPUs" in page.locator("#spawn_form").text_content()
    page.select_option("#gpus", str(gpus))
    page.click("#spawn_form [type=submit]")


def wait_for_notebook(page, path):
    """nbgitpuller clones, then opens the chapter: as a notebook, which is what has cells."""
    page.wait_for_function(
        """path => {
            const panel = window.jupyterapp?.shell.currentWidget;
            return panel?.context?.path === path && panel.content?.widgets !== undefined;
        }""",
        arg=f"course/{path}",
    )
    page.evaluate(READY)


def test_from_the_rocket_to_a_stopped_run(html, hub, context):
    page = press_the_rocket(context, html, CHAPTER)
    log_in_and_choose(page, gpus=2)
    wait_for_notebook(page, CHAPTER)
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


def test_a_chapter_that_is_a_markdown_file_opens_as_a_notebook(html, hub, context):
    page = press_the_rocket(context, html, REFERENCE)
    log_in_and_choose(page, gpus=0)
    wait_for_notebook(page, REFERENCE)
    hub.stop_server("ada")
