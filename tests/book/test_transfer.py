"""What a first visit transfers, compressed, as a browser counts it."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest
from loading import Loading
from static_site import Compressing, served
from test_pages import PAGES

from d2lmgpu.machine.files import PACKAGE

PAGE = 1_300_000  # bytes that a page may have: with its styles, scripts and fonts
TRAINING = 100_000  # bytes of code for the training in a page, without its images


class Transfers:
    """Bytes that a page of the browser has received, by file: {address: bytes}."""

    def __init__(self, page):
        self.files, self.names = {}, {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self.asked)
        session.on("Network.loadingFinished", self.arrived)
        session.send("Network.enable")

    def asked(self, event):
        self.names[event["requestId"]] = event["request"]["url"]

    def arrived(self, event):
        if self.names[event["requestId"]].startswith("http"):
            self.files[self.names[event["requestId"]]] = event["encodedDataLength"]

    def sum(self, *parts):
        """Bytes of the files whose address has one of these parts."""
        return sum(size for url, size in self.files.items() if any(part in url for part in parts))


@pytest.fixture(scope="module")
def address(built):
    with served(built, Compressing) as address:
        yield address


def visited(browser, address, path):
    """A page that nobody has seen before, when all of it is there; and its transfers."""
    page = browser.new_context().new_page()
    transfers = Transfers(page)
    loading = Loading(page)
    page.goto(f"{address}/{path}.html")
    loading.wait()
    return page, transfers


def too_large(browser, address, pages):
    sizes = {}
    for path in pages:
        page, transfers = visited(browser, address, path)
        sizes[path] = transfers.sum("http")
        page.context.close()
    assert min(sizes.values()) > 100_000, "what is transferred was not counted"
    return {path: size for path, size in sizes.items() if size > PAGE}


def test_a_page_is_light_at_the_first_visit(browser, address):
    """Every third; all of them in ``every_mode.py``."""
    assert too_large(browser, address, PAGES[::3]) == {}


FIGURES = {
    "chapters/reference/glossary": set(),
    "chapters/scaling/allreduce": {"address", "motion", "race"},
    "chapters/scaling/cost-model": {"address", "explorer"},
    "chapters/concise/accumulation": {"address", "motion", "swimlanes"},
}
SCRIPTS = {file.stem for file in (PACKAGE / "figures").glob("*.js")}


@pytest.mark.parametrize("path", FIGURES)
def test_a_page_loads_the_scripts_of_its_own_figures_only(browser, address, path):
    page, transfers = visited(browser, address, path)
    page.context.close()
    names = {PurePosixPath(urlsplit(url).path) for url in transfers.files}
    assert {name.stem for name in names if name.suffix == ".js"} & SCRIPTS == FIGURES[path]


def test_training_brings_little_code_and_only_when_it_is_used(browser, address):
    page, transfers = visited(browser, address, "chapters/intro")
    before = set(transfers.files)
    page.locator(".training form [name=network][value=mlp]").evaluate("e => e.click()")
    page.get_by_role("button", name="One device, then two").click()
    page.locator(".training-said", has_text="identical").wait_for()
    later = {url for url in transfers.files if url not in before and "images.js" not in url}
    page.context.close()
    assert any("code.js" in url for url in later)
    assert 20_000 < transfers.sum("/training/", "uPlot") - transfers.sum("images.js") <= TRAINING
    assert transfers.sum("images.js") > 1_000_000
