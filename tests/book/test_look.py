"""How the built pages look: what is read stands out from its ground, and titles take one line."""

import pytest
from contrast import FAINT
from test_pages import HTML, PAGES


def faint(browser, scheme, pages):
    """How many words the outputs of these pages say, and those that can hardly be read."""
    count, faint = 0, {}
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        for path in pages:
            page.goto((HTML / f"{path}.html").as_uri())
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": 1280, "height": height})  # only what is in it is found
            texts = page.evaluate(FAINT, ".cell_output")
            count += texts["count"]
            faint |= {path: texts["faint"]} if texts["faint"] else {}
    return count, faint


@pytest.mark.parametrize(("scheme", "pages"), [("light", PAGES[::2]), ("dark", PAGES[1::2])])
def test_what_outputs_say_can_be_read(browser, built, scheme, pages):
    """Each page in one of the two; in the other, too, in ``every_mode.py``."""
    count, hardly = faint(browser, scheme, pages)
    assert count > 300 and hardly == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_its_colours_before_any_script_has_come(browser, built, scheme):
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.route("**/*.js*", lambda route: route.abort())
        page.goto((HTML / f"{PAGES[0]}.html").as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert (
            page.locator(".logo__image").evaluate_all(
                "all => all.filter(image => image.checkVisibility()).length"
            )
            == 1
        )


def test_titles_in_the_side_bar_take_one_line(browser, built):
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.goto((HTML / f"{PAGES[0]}.html").as_uri())
        heights = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".bd-links li a")].map(a => {
                const words = document.createRange();
                words.selectNodeContents(a);
                return [a.textContent, new Set([...words.getClientRects()].map(r => r.top)).size];
            }))"""
        )
    assert len(heights) >= len(PAGES) - 1 and {*heights.values()} == {1}, heights


def test_the_emblem_is_on_every_page(browser, built):
    for path in PAGES:
        head, _, body = (HTML / f"{path}.html").read_text().partition("</head>")
        assert 'rel="icon" href="' in head and "_static/emblem.svg" in head and "emblem.svg" in body
