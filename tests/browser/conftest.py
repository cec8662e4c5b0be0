"""A real JupyterLab, a real Voilà and a real browser; screenshots stay in .cache/screenshots."""

from pathlib import Path

import pytest
from servers import SECONDS, jupyterlab

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / ".cache" / "screenshots"


@pytest.fixture
def page(browser, request):
    """A page that fails the test if it asks another host; photographed as the test leaves it."""
    outside = []
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    page.on("request", lambda r: None if local(r.url) else outside.append(r.url))
    yield page
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{request.node.name}.png")
    context.close()
    assert outside == []


def local(url):
    return url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))


@pytest.fixture
def server(tmp_path):
    with jupyterlab(tmp_path) as server:
        yield server
