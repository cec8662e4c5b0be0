"""The first page: its cover, its map of the course, and what other sites show of it."""

import re

import pytest
from PIL import Image
from test_pages import HTML, PAGES, ROOT, parsed

FIRST = HTML / "chapters" / "intro.html"
READ = [page for page in PAGES[1:] if not page.startswith("chapters/reference/")]


def test_the_social_card_has_the_size_that_sites_ask_for():
    card = ROOT / "assets" / "social-card.png"
    with Image.open(card) as picture:
        assert picture.size == (1200, 630)
        assert len(picture.convert("RGB").getcolors(maxcolors=2**20)) > 50, "an empty picture"
    assert card.stat().st_size < 100_000


def test_the_map_leads_to_every_page_with_its_minutes(built):
    stops = {
        link["href"].removesuffix(".html"): link.select_one("small").get_text()
        for link in parsed(FIRST).select("article .course-map a")
    }
    assert [f"chapters/{page}" for page in stops] == READ
    for page, label in stops.items():
        minutes = re.search(r"(\d+) minutes$", label).group(1)
        opening = parsed(HTML / "chapters" / f"{page}.html").select_one("article").get_text()
        assert minutes == re.search(r"about\s+(\d+)\s+minutes", opening).group(1), page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_cover_can_be_read(browser, built, scheme, width):
    viewport = {"width": width, "height": 800}
    with browser.new_context(color_scheme=scheme, viewport=viewport) as context:
        page = context.new_page()
        page.emulate_media(reduced_motion="reduce")
        page.goto(FIRST.as_uri())
        cover = page.locator("article svg.cover")
        assert len(cover.get_attribute("aria-label")) > 50
        texts = cover.locator("text").evaluate_all(
            "all => all.map(e => [e.getBoundingClientRect().height, getComputedStyle(e).fill])"
        )
        ink = page.evaluate("getComputedStyle(document.querySelector('article')).color")
    assert len(texts) == 2
    assert all(height >= 11 and fill == ink for height, fill in texts)


def test_the_cover_moves_once_where_motion_is_allowed_and_never_elsewhere(browser, built):
    moving = (
        "document.querySelector('svg.cover').getAnimations({subtree: true}).map(a => "
        "[a.effect.getTiming().iterations, a.effect.getComputedTiming().endTime])"
    )
    for motion, count in (("no-preference", 17), ("reduce", 0)):
        with browser.new_context(reduced_motion=motion) as context:
            page = context.new_page()
            page.goto(FIRST.as_uri())
            animations = page.evaluate(moving)
        assert len(animations) == count
        assert all(iterations == 1 and end <= 5000 for iterations, end in animations)


def test_other_sites_are_told_what_a_page_is_about(built):
    for path in PAGES:
        head = parsed(HTML / f"{path}.html").head
        tags = {
            m.get("property") or m.get("name"): m["content"] for m in head.select("meta[content]")
        }
        assert tags["og:title"] == parsed(HTML / f"{path}.html").h1.get_text().rstrip("#")
        assert 20 < len(tags["og:description"]) <= 210 and "<" not in tags["og:description"]
        assert tags["description"] == tags["og:description"]
        assert "og:image" not in tags, "no address is set, and a picture needs one"
