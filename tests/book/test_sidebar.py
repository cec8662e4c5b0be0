"""The side bar shows which page one is on, and keeps the search in sight."""

import threading

import pytest
from static_site import Quiet, served
from test_pages import visit

PAGES = ("chapters/intro", "chapters/scratch/pytorch", "chapters/memory/sharding")
LAST = "chapters/reference/bibliography"
AT_THE_EDGE = "chapters/concise/overnight"  # whose entry has room only while there is no logo
SIGHT = """() => {
    const box = selector => [...document.querySelectorAll(selector)].pop().getBoundingClientRect();
    const bar = box(".bd-sidebar-primary");
    return [".bd-docs-nav li.current.active", ".bd-sidebar-primary .search-button-field"]
        .map(box).every(({ top, bottom }) => top >= bar.top && bottom <= bar.bottom);
}"""


def in_sight(page):
    page.wait_for_function(f"({SIGHT})()")


@pytest.mark.parametrize("name", [*PAGES, LAST])
def test_where_one_arrives_the_entry_and_the_search_are_in_sight(browser, site, name):
    page, _ = visit(browser, site, f"{name}.html", 1280)
    in_sight(page)
    page.context.close()


def test_nothing_is_scrolled_while_the_entry_has_room(browser, site):
    page, _ = visit(browser, site, f"{PAGES[1]}.html", 1280)
    in_sight(page)
    assert page.locator(".bd-sidebar-primary").evaluate("bar => bar.scrollTop") == 0
    page.context.close()


def test_from_page_to_page_the_entry_stays_in_sight(browser, site):
    page, _ = visit(browser, site, f"{PAGES[0]}.html", 1280)
    for _ in range(10):
        before = page.url
        page.locator("a.right-next").click()
        page.wait_for_url(lambda url, before=before: url != before)
        in_sight(page)
    page.context.close()


def test_a_late_logo_leaves_the_entry_in_sight(browser, built):
    come = threading.Event()

    class LateLogo(Quiet):
        def do_GET(self):
            if self.path.endswith("emblem.svg"):
                come.wait()
            super().do_GET()

    with served(built, LateLogo) as site:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{site}/{AT_THE_EDGE}.html", wait_until="domcontentloaded")
        page.evaluate("() => new Promise(done => setTimeout(done))")
        come.set()
        page.wait_for_load_state()
        in_sight(page)
        page.close()
