"""A checkout of the course as it comes, its built pages, and the rocket on each of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from exercise_notebook import NOTEBOOK
from lab_notebook import CELLS
from learner import write_notebook
from running_hub import ROOT

FOLDER = "hands-on-multi-gpu"  # the learner's folder: the last part of the repository's address
CHAPTER, REFERENCE = "chapters/lab/training-lab.ipynb", "chapters/reference/devices.md"
EXERCISES = "chapters/reference/exercises.md"


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
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
        "myst.xref_missing",
        "ref.term",
        "ref.doc",
        "ref.ref",
    ]
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
