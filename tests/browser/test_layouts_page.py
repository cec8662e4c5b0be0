"""The explorer of layouts in a page: ranked as the package does, by the keys, small, on paper."""

import json
import re

import pytest
from contrast import FAINT
from moving import text_without_scripts, words
from playwright.sync_api import expect

from d2lmgpu.costmodel.layouts import BAND, Layout, ranked
from d2lmgpu.costmodel.presets import PRESETS
from d2lmgpu.course import explorers
from d2lmgpu.course.explorers import CARD_OF, GPTS, MOST_CP, MOST_TP

FITTING = ".layouts-one:not(.layouts-greyed)"


@pytest.fixture(scope="module")
def html():
    return f"<article>{explorers.layouts()._repr_html_()}</article>"


@pytest.fixture
def shown(show_offline, html):
    return show_offline(html)


def choose(page, label, text):
    page.get_by_role("combobox", name=label, exact=True).select_option(text)


def best(page):
    return json.loads(page.locator(".layouts").get_attribute("data-best"))


def test_the_page_ranks_as_the_package_does(shown):
    choose(shown, "Network", "Llama 2 13B")
    choose(shown, "Machines of 8", "A100")
    choose(shown, "Tokens of a sequence", "131,072")
    choose(shown, "Tokens of a batch", "1,048,576")
    sizes = GPTS["Llama 2 13B"]
    sizes = type(sizes)(sizes.width, sizes.blocks, sizes.symbols, 131_072)
    candidates = ranked(sizes, 64, 8, PRESETS["A100"], CARD_OF["A100"], MOST_TP, MOST_CP)
    counts = [
        sum(candidate.verdict == of for candidate in candidates)
        for of in ("fits", "cannot be told", "does not fit", "cannot be made")
    ]
    assert [int(n) for n in re.findall(r"\d+", words(shown).split("Of ")[1])[:5]] == [
        len(candidates),
        *counts,
    ]
    assert Layout(**best(shown)) == candidates[0].layout
    first = shown.locator(FITTING).first.inner_text()
    assert f"modelled {candidates[0].plan.step.seconds:.2g} s" in first
    low, high = (f"{times * candidates[0].plan.step.seconds:.2g}" for times in BAND)
    assert f"{low} to {high} s" in first


def test_what_does_not_fit_is_grey_and_says_why(shown):
    choose(shown, "GPUs", "1,024")
    assert shown.locator(FITTING).count() == 6
    fit, others = 398, 33 + 109 + 130
    shown.get_by_text("more that do not, or may not").click()
    greyed = shown.locator(".layouts-greyed")
    expect(greyed).to_have_count(others)  # a list is made when its summary is open
    reasons = " ".join(greyed.all_inner_texts())
    assert "cannot be told: " in reasons and "does not fit: " in reasons
    assert "cannot be made: 128 sequences for 1,024 groups" in reasons
    assert f" {fit} fit" in words(shown)
    shown.get_by_text("more that fit").click()
    expect(shown.locator(FITTING)).to_have_count(fit)


def test_the_keyboard_is_enough(shown):
    before = words(shown)
    shown.get_by_role("combobox", name="GPUs", exact=True).focus()
    shown.keyboard.press("ArrowDown")
    assert "on 256 H100" in words(shown) and words(shown) != before
    summary = shown.locator("summary").first
    summary.focus()
    shown.keyboard.press("Enter")
    assert shown.locator("details").first.get_attribute("open") is not None


def test_the_address_brings_the_same_choices_back(shown):
    choose(shown, "Network", "Llama 2 7B")
    choose(shown, "Machines of 8", "H200")
    text, address = words(shown), shown.url
    assert "#explorer-1?network=Llama+2+7B" in address
    shown.goto("about:blank")
    shown.goto(address)
    assert words(shown) == text
    shown.goto("about:blank")
    shown.goto(address.split("#")[0] + "#explorer-1?network=GPT-9&gpus=x")
    assert words(shown).startswith("Llama 3 70B, 128 sequences of 32,768 tokens on 64 H100.")


@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits(shown, width):
    shown.set_viewport_size({"width": width, "height": 900})
    choose(shown, "Network", "Llama 3 405B")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    bars = [bar.bounding_box() for bar in shown.locator(".layouts svg").all()]
    assert bars and all(box["width"] >= 100 for box in bars)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_read_in_both_themes(shown, theme):
    ground, ink = {"light": ("#fff", "#222"), "dark": ("#121212", "#ddd")}[theme]
    page = f"html {{ color-scheme: {theme}; }} body {{ background: {ground}; color: {ink}; }}"
    shown.add_style_tag(content=page)
    read = shown.evaluate(FAINT, ".layouts")
    assert read["count"] > 20 and read["faint"] == []


def test_on_paper_the_choices_are_words(shown):
    shown.emulate_media(media="print")
    assert shown.locator("select:visible").count() == 0
    assert words(shown).startswith("Llama 3 70B, 128 sequences of 32,768 tokens on 64 H100.")
    assert shown.locator(FITTING).count() == 6


def test_without_scripts_the_words_are_there(browser, html):
    text = text_without_scripts(browser, html)
    assert repr(explorers.layouts()) in text
    assert "took 1.52 to 2.47 times as long as modelled" in text
