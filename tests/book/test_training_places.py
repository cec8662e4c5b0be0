"""The pages that train: each has its panel, nothing jumps for it, and no other page loads it."""

import pytest
from soaking import sample
from test_pages import HTML, PAGES, parsed, visit

PLACES = [
    "chapters/intro",
    "chapters/scratch/pytorch",
    "chapters/scratch/mxnet",
    "chapters/concise/pytorch",
    "chapters/concise/mxnet",
    "chapters/lab/training-lab",
    "chapters/scaling/allreduce",
]
WIDTHS = [320, 390, 600, 1280]
# Two frames later, when what follows the width by a script has followed it.
HEIGHT = """() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(
    () => resolve(document.querySelector(".training").getBoundingClientRect().height))))"""
# On a screen of 800 pixels that is a layout shift of 0.05, a third of what counts as a good page.
JUMP = 45


@pytest.mark.parametrize("page", sample(3, PLACES))
def test_nothing_jumps_when_the_panel_comes(browser, built, page):
    (place,) = parsed(HTML / f"{page}.html").select("article div.training")
    assert place.get_text().strip().endswith("."), "a sentence for those who have no script"
    held = []

    def heights():
        for width in WIDTHS:
            opened.set_viewport_size({"width": width, "height": 800})
            yield opened.evaluate(HEIGHT)

    with browser.new_context() as context:
        context.route("**/training/panel.js", lambda route: held.append(route))
        opened = context.new_page()
        with opened.expect_request("**/training/panel.js"):
            opened.goto((built / f"{page}.html").as_uri(), wait_until="domcontentloaded")
        before = list(heights())
        held[0].continue_()
        opened.locator(".training[data-ready]").wait_for()
        after = list(heights())
    assert all(a - b <= JUMP for a, b in zip(after, before)), (before, after)


def test_no_other_page_loads_it(browser, built):
    opened, _ = visit(browser, built.as_uri(), f"{PAGES[1]}.html", 1280)
    names = opened.evaluate("[...document.scripts].map(script => script.src)")
    opened.context.close()
    assert any("pages/loader.js" in name for name in names)
    assert not any("training/panel" in name for name in names)
    assert [page for page in PAGES if parsed(HTML / f"{page}.html").select(".training")] == PLACES
