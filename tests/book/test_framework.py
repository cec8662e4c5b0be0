"""The reader's framework: asked once, remembered, and what the path through the pages follows."""

import re

import pytest
from programs import program
from soaking import sample
from static_site import served
from test_pages import HTML, PAGES, parsed, visit

CHAPTERS = program("chapter_facts").chapters()
ONLY_FOR = {chapter.page: chapter.only_for for chapter in CHAPTERS.values()}
PAIRS = [
    (f"chapters/{chapter.facts.twin}", chapter.page)
    for chapter in CHAPTERS.values()
    if chapter.facts.twin
]
FORK = "chapters/foundations/data-parallelism"  # the page before the first pair
IN_SIDE_BAR = ".bd-sidebar-primary choose-framework"


def pages_of(framework):
    """The pages in their order, less those that are for the other framework's readers."""
    return [page for page in PAGES if ONLY_FOR.get(page) in (framework, None)]


def choose(page, framework, within=IN_SIDE_BAR):
    page.locator(within).get_by_label(framework).check()


def ends(page):
    """Where the links to the previous and the next page lead, as names of pages."""
    links = page.locator(".prev-next-area a").evaluate_all("all => all.map(a => a.href)")
    return [re.search(r"chapters/([^?]*)\.html", link)[1] for link in links]


@pytest.mark.parametrize(
    "framework, site", sample(1, [("PyTorch", "http"), ("MXNet", "file")]), indirect=["site"]
)
def test_next_leads_along_the_framework_to_the_last_page(browser, site, framework):
    page, troubles = visit(browser, site, "chapters/intro.html", 1280)
    choose(page, framework)
    seen = [PAGES[0]]
    while link := page.locator(".right-next").all():
        title = link[0].locator(".prev-next-title").text_content()
        page.goto(link[0].evaluate("a => a.href"), wait_until="domcontentloaded")
        assert page.locator("article h1").text_content() == f"{title}#"
        assert ends(page)[0] == seen[-1].removeprefix("chapters/")
        seen.append(page.evaluate("DOCUMENTATION_OPTIONS.pagename"))
    chosen = page.locator(IN_SIDE_BAR).get_by_label(framework)
    assert seen == pages_of(framework) and chosen.is_checked()
    page.context.close()
    assert troubles == []


def test_unasked_the_order_is_that_of_pytorch_and_no_twin_is_linked(browser, built):
    page, _ = visit(browser, built.as_uri(), f"{FORK}.html", 1280)
    assert ends(page)[1] == "scratch/pytorch"
    page.goto((built / f"{PAIRS[0][0]}.html").as_uri())
    assert ends(page) == [FORK.removeprefix("chapters/"), "concise/ddp-by-hand"]
    assert page.locator(".twin:visible").count() == 0
    choose(page, "MXNet", ".prev-next-footer choose-framework")
    assert ends(page)[1] == "scratch/mxnet"
    assert page.locator(".twin:visible").count() > 3
    assert page.locator(IN_SIDE_BAR).get_by_label("MXNet").is_checked()
    page.reload()
    assert page.locator("choose-framework").count() == 1, "it is asked once"
    page.context.close()


def test_the_keyboard_chooses(browser, built):
    page, _ = visit(browser, built.as_uri(), f"{FORK}.html", 1280)
    page.locator(f"{IN_SIDE_BAR} input").first.focus()
    page.keyboard.press("ArrowRight")
    assert ends(page)[1] == "scratch/mxnet"
    page.keyboard.press("ArrowLeft")
    assert ends(page)[1] == "scratch/pytorch"
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_other_way_is_dimmed_and_can_be_read(browser, built, scheme):
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto((built / "chapters/intro.html").as_uri())
        choose(page, "MXNet")
        links = page.locator(".bd-links li a").evaluate_all(
            "all => all.map(a => [a.textContent.trim(), getComputedStyle(a).fontStyle])"
        )
    dimmed = {title for title, style in links if style == "italic"}
    assert dimmed == {
        chapter.short for chapter in CHAPTERS.values() if chapter.only_for == "PyTorch"
    }
    assert len(dimmed) > 1


def test_where_nothing_may_be_kept_that_is_said(browser, built):
    """A frame in a sandbox has no storage."""
    with served(built) as address, browser.new_context() as context:
        page = context.new_page()
        look = 'sandbox="allow-scripts" width="1200" height="700"'
        page.set_content(f'<iframe {look} src="{address}/{FORK}.html"></iframe>')
        frame = page.frame_locator("iframe")
        frame.locator(IN_SIDE_BAR).get_by_label("MXNet").check()
        status = frame.locator(f"{IN_SIDE_BAR} [role=status]")
        assert status.text_content() and frame.locator(".right-next[href*=mxnet]").count() == 1


def test_from_file_to_file_the_links_take_the_answer_along(browser, built):
    """Also where a file finds an empty storage: here all of them do."""
    with browser.new_context() as context:
        page = context.new_page()
        page.add_init_script("localStorage.clear()")
        page.goto((built / f"{FORK}.html").as_uri())
        choose(page, "MXNet")
        page.locator(".right-next").click()
        page.wait_for_url("**/scratch/mxnet.html")
        assert page.locator(IN_SIDE_BAR).get_by_label("MXNet").is_checked()
        choose(page, "PyTorch")
        page.locator(".bd-links a[href*='memory/fits.html']").click()
        page.wait_for_url("**/memory/fits.html")
        assert page.locator(IN_SIDE_BAR).get_by_label("PyTorch").is_checked()


@pytest.mark.parametrize("single, other", [*PAIRS, *(pair[::-1] for pair in PAIRS)])
def test_each_section_links_to_its_twin(built, single, other):
    there = {at["id"]: at for at in parsed(HTML / f"{other}.html").select("article section[id]")}
    name = other.rpartition("/")[2]
    linked = {}
    for link in parsed(HTML / f"{single}.html").select("article .twin a"):
        section = link.find_parent("section")
        page, _, part = link["href"].partition("#")
        assert page == f"{name}.html"
        linked[section["id"]] = part
        if part:
            headings = [at.find(["h2", "h3", "h4"]).get_text() for at in (section, there[part])]
            assert headings[0] == headings[1]
    article = parsed(HTML / f"{single}.html").select_one("article")
    same = {at["id"] for at in article.select("section[id]")} & {*there}
    assert same <= {*linked} and len(linked) >= 7
