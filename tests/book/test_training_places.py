"""The pages that train: each has its panel, nothing jumps for it, and no other page loads it."""

import pytest
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
# How far the layout has moved since the page was opened (Cumulative Layout Shift).
SHIFT = """() => new Promise(resolve => {
    let sum = 0;
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) sum += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
})"""


@pytest.mark.parametrize("page", PLACES)
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_jumps_when_the_panel_comes(browser, built, page, width):
    (place,) = parsed(HTML / f"{page}.html").select("article div.training")
    assert place.get_text().strip().endswith("."), "a sentence for those who have no script"
    held = []
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        context.route("**/training/panel.js", lambda route: held.append(route))
        opened = context.new_page()
        with opened.expect_request("**/training/panel.js"):
            opened.goto((built / f"{page}.html").as_uri(), wait_until="domcontentloaded")
        opened.locator(".training").scroll_into_view_if_needed()
        before = opened.evaluate(SHIFT)
        held[0].continue_()
        opened.locator(".training[data-ready]").wait_for()
        assert opened.evaluate(SHIFT) - before <= 0.05


def test_no_other_page_loads_it(browser, built):
    opened, _ = visit(browser, built.as_uri(), f"{PAGES[1]}.html", 1280)
    names = opened.evaluate("[...document.scripts].map(script => script.src)")
    opened.context.close()
    assert any("pages/loader.js" in name for name in names)
    assert not any("training/panel" in name for name in names)
    assert [page for page in PAGES if parsed(HTML / f"{page}.html").select(".training")] == PLACES
