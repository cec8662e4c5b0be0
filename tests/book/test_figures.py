"""Figures have a number and a name, and the text of their page refers to each of them."""

import re

from test_pages import EVERY_PAGE, HTML, parsed

ELSEWHERE = ".explore, .training, .cell:not(:has(figure)) .steps"  # answers, runs, reminders
LIVE = re.compile(r" at [\w ]+ [\d.]+$")  # how the curve of a run that a cell makes ends its words


@EVERY_PAGE
def test_each_picture_is_a_figure_that_the_text_refers_to(built, page):
    article = parsed(HTML / f"{page}.html").select_one("article.bd-article")
    others = {id(part) for part in article.select(f":is({ELSEWHERE}) :is(svg, figure, a)")}
    others |= {id(part) for part in article.select(ELSEWHERE)}

    def select(selector):
        return [part for part in article.select(selector) if id(part) not in others]

    bare = [
        picture["aria-label"][:80]
        for picture in select(".cell_output svg[role=img]")
        if not picture.find_parent("figure") and not LIVE.search(picture["aria-label"])
    ]
    assert bare == []
    referred = {link["href"] for link in select("p a[href^='#fig-'], li a[href^='#fig-']")}
    figures = select("figure")
    assert {f"#{figure['id']}" for figure in figures} == referred
    for figure in figures:
        assert re.fullmatch(r"Fig\. \d+ ", figure.select_one(".caption-number").get_text())
        assert figure.select_one(".caption-text").get_text().strip().endswith(".")


def test_there_are_figures_and_each_number_is_there_once(built):
    numbers = [
        int(number.get_text().split()[1])
        for path in (HTML / "chapters").rglob("*.html")
        for number in parsed(path).select("figure .caption-number")
    ]
    assert len(numbers) > 30 and sorted(numbers) == [*range(1, len(numbers) + 1)]
