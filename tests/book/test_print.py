"""A page that its reader prints: light and whole, and then the screen is as it was."""

import re

import pytest
from contrast import CONTRAST
from pypdf import PdfReader

PAGE = "chapters/scratch/pytorch"  # with long lines of code and a lab
LOOK = f"""() => {{ {CONTRAST} addEventListener("beforeprint", () => {{
  const inks = [document.body, ...document.querySelectorAll(".lab-printed svg text")]
    .map((one) => [getComputedStyle(one), one instanceof SVGElement])
    .map(([style, drawn]) => (drawn ? style.fill : style.color));
  window.printed = {{
    theme: document.documentElement.dataset.theme,
    faintest: Math.min(...inks.map((ink) => contrast(ink, "rgb(255, 255, 255)"))),
    inks: inks.length,
  }};
}}) }}"""
# The lines of code and the columns of tables that reach beyond the paper.
TOO_WIDE = """() => {
  const paper = document.documentElement.clientWidth;
  const end = (one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return Math.max(...[...range.getClientRects()].map((box) => box.right), 0);
  };
  return [...document.querySelectorAll("article :is(pre, td, th)")]
    .filter((one) => end(one) > paper)
    .map((one) => one.textContent.trim().slice(0, 60));
}"""


@pytest.fixture(scope="module")
def printed(browser, built, tmp_path_factory):
    """What a dark page was like while it was printed and after it, and the text on the paper."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(f"{built.as_uri()}/{PAGE}.html", wait_until="load")
    page.locator(".lab-plot .uplot").first.wait_for()
    page.evaluate(LOOK)
    path = tmp_path_factory.mktemp("printed") / "page.pdf"
    page.pdf(path=path, format="A4")
    yield page, "".join(plain(sheet.extract_text()) for sheet in PdfReader(path).pages)
    context.close()


def plain(text):
    return re.sub(r"\s", "", text)


def test_a_dark_page_is_printed_in_the_light_theme(printed):
    page, _ = printed
    seen = page.evaluate("window.printed")
    assert seen["theme"] == "light"
    assert seen["inks"] > 10 and seen["faintest"] >= 3


def test_the_screen_is_dark_again(printed):
    page, _ = printed
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_nothing_is_wider_than_the_paper(printed):
    page, _ = printed
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})  # A4 without its margins
    assert page.evaluate(TOO_WIDE) == []


def test_what_only_a_hand_can_use_is_not_on_paper(printed):
    _, text = printed
    assert "ChartasSVG" not in text
