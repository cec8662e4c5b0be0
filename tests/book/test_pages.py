"""The built pages: complete, readable on a telephone, and asking no other host for anything."""

import functools
import itertools
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from loading import Loading

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [TOC["root"]] + [page["file"] for part in TOC["parts"] for page in part["chapters"]]
EVERY_PAGE = pytest.mark.parametrize("page", PAGES)
# From a server and as a file in turns; each page both ways in ``every_mode.py``.
EITHER_WAY = pytest.mark.parametrize(
    "page, site", list(zip(PAGES, itertools.cycle(["http", "file"]))), indirect=["site"]
)
CUT = """() => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    return [...document.querySelectorAll("article pre")]
        .filter(block => block.scrollWidth > block.clientWidth)
        .map(block => block.textContent.slice(0, 60));
}"""


@functools.cache  # many tests read a page, and none may change it
def parsed(path):
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def visit(browser, site, path, width):
    """Opens a page: ``(page, troubles)``, the troubles being requests elsewhere and errors."""
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    troubles = []

    def guard(route):
        if route.request.url.startswith(site):
            route.continue_()
        else:
            troubles.append(f"asks another host: {route.request.url}")
            route.abort()

    def answered(response):
        if response.status >= 400:
            troubles.append(f"{response.status}: {response.url}")

    def on_message(message):
        if message.type == "error":
            troubles.append(f"console: {message.text}")

    context.route(lambda url: not url.startswith(("data:", "blob:")), guard)
    page.on("response", answered)
    page.on("console", on_message)
    page.on("pageerror", lambda error: troubles.append(f"script: {error}"))
    loading = Loading(page)
    page.goto(f"{site}/{path}", wait_until="load")
    loading.wait()
    return page, troubles


@EITHER_WAY
def test_page_is_self_contained_and_fits(browser, site, page):
    opened, troubles = visit(browser, site, f"{page}.html", width=360)
    narrow = opened.evaluate("document.documentElement.scrollWidth")
    raw = opened.evaluate(
        "[...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container'))"
        ".map(m => m.textContent)"
    )
    wider = {}
    for width in (768, 1440, 1280):
        opened.set_viewport_size({"width": width, "height": 800})
        wider[width] = opened.evaluate("document.documentElement.scrollWidth")
    cut = opened.evaluate(CUT)
    opened.context.close()
    assert troubles == []
    assert narrow <= 360, "the page scrolls sideways"
    assert all(seen <= width for width, seen in wider.items()), wider
    assert raw == [], "formulas that are shown as raw TeX"
    assert cut == [], "lines of code that are cut"


@EVERY_PAGE
def test_page_shows_no_error(built, page):
    soup = parsed(HTML / f"{page}.html")

    def texts_of(selector):
        parts = soup.select(selector)
        return [p.get_text() for p in parts if not p.find_parent(class_="tag_raises-exception")]

    assert texts_of(".output.traceback, .system-message, .problematic") == []
    assert [text for text in texts_of(".stderr") if "Warning" in text] == []
    traceback = "Traceback (most recent call last)"
    meant = sum(cell.get_text().count(traceback) for cell in soup.select(".tag_raises-exception"))
    assert soup.get_text().count(traceback) == meant


@EVERY_PAGE
def test_pictures_say_what_they_show(built, page):
    article = parsed(HTML / f"{page}.html").select_one("article.bd-article")
    silent = [
        str(image)[:200]
        for image in article.select("img, svg[role=img]")
        if not describes(image.get("alt") or image.get("aria-label") or "", image.get("src", ""))
    ]
    assert silent == []


def describes(text, source):
    """Whether a text alternative says anything: for want of one Sphinx takes the file's name."""
    return bool(text.strip()) and text.split("/")[-1] != source.split("/")[-1]


@EVERY_PAGE
def test_links_inside_the_book_lead_somewhere(built, page):
    own = HTML / f"{page}.html"
    dead = []
    for link in parsed(own).select("article a[href], nav a[href]"):
        path, _, anchor = link["href"].partition("#")
        if "://" in path or path.startswith(("mailto:", "data:")):
            continue
        target = (own.parent / path).resolve() if path else own
        on_page = anchor and target.suffix == ".html"
        if not target.exists() or (on_page and anchor not in anchors(target)):
            dead.append(link["href"])
    assert dead == []


@functools.cache
def anchors(path):
    """What a link can lead to within a page; many links lead to one page."""
    return {element["id"] for element in parsed(path).find_all(id=True)}
