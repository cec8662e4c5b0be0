"""A real JupyterLab, a real Voilà and a real browser."""

import subprocess
import sys

import lab_page
import pytest
from servers import SECONDS, jupyterlab
from training_page import ASSETS, write_page, write_site


@pytest.fixture
def page(browser):
    """A page that fails the test if it asks another host."""
    outside = []
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    page.on("request", lambda r: None if local(r.url) else outside.append(r.url))
    yield page
    context.close()
    assert outside == []


@pytest.fixture
def quiet(page):
    """Any word on the console fails the test."""
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []


@pytest.fixture
def show_offline(quiet, tmp_path):
    """Opens HTML as a file with the network cut."""
    quiet.context.set_offline(True)

    def show(html):
        file = tmp_path / "page.html"
        head = '<!doctype html><meta name="viewport" content="width=device-width"><title>x</title>'
        file.write_text(f"{head}<body>{html}</body>")
        quiet.goto(file.as_uri())
        return quiet

    return show


@pytest.fixture
def draw(show_offline):
    """Opens a page with the lab over the numbers of ``lab_page``, some of them others."""

    def draw(**others):
        page = show_offline(lab_page.html(**others))
        page.evaluate(lab_page.FRAME)
        return page

    return draw


def local(url):
    return url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))


@pytest.fixture
def little_data(monkeypatch):
    """Kernels that start from now on train with little data, for one epoch."""
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")


@pytest.fixture
def server(tmp_path):
    with jupyterlab(tmp_path) as server:
        yield server


@pytest.fixture(scope="session")
def panel_images(tmp_path_factory):
    """The images as the book gets them."""
    file = tmp_path_factory.mktemp("images") / "images.js"
    subprocess.run([sys.executable, ASSETS.parent / "tools" / "page_images.py", file], check=True)
    return file


@pytest.fixture
def panel_site(tmp_path):
    panel_site = tmp_path / "site"
    panel_site.mkdir()
    return panel_site


@pytest.fixture
def show_panel(quiet, panel_site, panel_images):
    """Opens a page with a panel from a file with the network cut."""

    def show(engine=None, **settings):
        if not (panel_site / "_static").exists():
            write_site(panel_site, panel_images, engine)
        write_page(panel_site, **settings)
        quiet.context.set_offline(True)
        quiet.goto((panel_site / "page.html").as_uri())
        quiet.locator(".training[data-ready]").wait_for()
        return quiet

    return show
