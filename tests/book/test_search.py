"""The search finds the page on a subject, quotes its own words, and marks them where one goes."""

import pytest
from test_pages import visit

SUBJECTS = {
    "out of memory": "memory/out-of-memory",
    "ring": "scaling/allreduce",
    "hang": "diagnosis/hangs",
    "learning rate": "scaling/batch-size",
}
MARKS = "article .highlighted"


@pytest.fixture
def results(browser, site):
    """Opens the results for some words; the page, and what went wrong on it."""
    opened = []

    def results(words):
        page, troubles = visit(browser, site, f"search.html?q={words}", 1280)
        opened.append(page)
        page.locator("#search-results li a").first.wait_for()
        return page, troubles

    yield results
    for page in opened:
        page.context.close()


@pytest.mark.parametrize("words", SUBJECTS)
def test_the_first_is_the_page_on_the_subject(results, words):
    page, _ = results(words)
    assert SUBJECTS[words] in page.locator("#search-results li a").first.get_attribute("href")


def test_each_page_is_quoted_by_words_of_its_own(results, site):
    page, troubles = results("ring")
    if site.startswith("file:"):  # among files a search fails to quote the pages that it finds
        return
    page.locator("#search-results li .context").nth(4).wait_for()
    quoted = page.locator("#search-results li .context").all_inner_texts()
    assert len(set(quoted)) == len(quoted)
    assert not [text for text in quoted if "Contents" in text]
    assert all("ring" in text.lower() for text in quoted[:4])
    assert troubles == []


def test_words_are_marked_on_the_page_that_was_chosen_and_on_no_other(results, site):
    page, troubles = results("device")
    page.goto(f"{site}/chapters/intro.html")
    page.locator(".training[data-ready]").wait_for()
    page.evaluate("new Promise((end) => setTimeout(end, 20))")  # Sphinx marks after 10 ms
    assert page.locator(MARKS).count() == 0
    page.go_back()
    link = page.locator("#search-results li a", has_text="Hands-On Multi-GPU")
    link.click()
    page.locator(".training[data-ready]").wait_for()
    page.locator(MARKS).nth(3).wait_for()
    if site.startswith("http:"):
        assert troubles == []


def test_the_field_s_sign_is_beside_the_words(results):
    page, _ = results("allreduce")
    field = page.locator("#main-content .bd-search input")
    sign = page.locator("#main-content .bd-search i").first.bounding_box()
    padding = float(field.evaluate("e => parseFloat(getComputedStyle(e).paddingLeft)"))
    assert field.bounding_box()["x"] + padding >= sign["x"] + sign["width"]
