"""The explorer of memory in a page: its script adds up what the package does."""

import csv
import re
from pathlib import Path

import pytest

from d2lmgpu.figures.memory import DEVICES, FIXED, MODELS, MemoryExplorer
from d2lmgpu.memory import peaks

VECTORS = Path(__file__).parents[1] / "memory" / "peaks.csv"
KINDS = {kind: f"yours, built like {kind}" for kind, _ in MODELS.values()}
KINDS |= {kind: text for text, kind in FIXED.items()}


@pytest.fixture
def shown(show_offline):
    return show_offline(MemoryExplorer()._repr_html_())


def choose(page, name, text):
    page.locator(f'[data-name="{name}"]').select_option(text)


def fill(page, letter, number):
    page.locator(f'[data-letter="{letter}"]').fill(str(number))


def size(page):
    return float(page.locator(".memory-answer").get_attribute("data-bytes"))


def answer(page):
    return page.get_by_role("status").inner_text()


def test_the_page_answers_as_fits_does(shown):
    with open(VECTORS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        choose(shown, "network", KINDS[row["kind"]])
        for name in ("precision", "optimizer", "strategy", "devices"):
            choose(shown, name, row[name])
        for letter, name in peaks.NUMBERS.items():
            if row[name] and shown.locator(f'[data-letter="{letter}"]:visible').count():
                fill(shown, letter, row[name])
        assert size(shown) == pytest.approx(int(row["peak"]), rel=0.02), row
    assert {int(row["devices"]) for row in rows} == {*DEVICES}


def test_known_networks_bring_their_numbers_and_ones_own_go_on_from_them(shown):
    choose(shown, "network", "GPT-2, 124 million")
    known = size(shown)
    assert not shown.get_by_label("Hidden size").is_visible()
    choose(shown, "network", "yours, built like GPT-2")
    assert shown.get_by_label("Hidden size").input_value() == "768"
    assert not shown.get_by_label("Key-value heads").is_visible(), "as many as there are heads"
    assert size(shown) == known
    fill(shown, "L", 24)
    assert size(shown) > known
    choose(shown, "network", "ResNet-50, 224x224")
    assert not shown.get_by_label("Tokens").is_visible()


def test_the_largest_batch_is_where_the_verdict_changes(shown):
    choose(shown, "network", "ResNet-50, 224x224")
    choose(shown, "card", "T4")
    sentence = answer(shown).split("The largest batch")[1].split("\n")[0]
    surely, perhaps = map(int, re.findall(r"\d+", sentence))
    for batch, text in (
        (surely, "fits"),
        (surely + 1, "cannot be told"),
        (perhaps, "cannot be told"),
        (perhaps + 1, "does not fit"),
    ):
        fill(shown, "n", batch)
        assert answer(shown).startswith(f"On T4: {text}.")


def test_numbers_that_make_no_network_are_refused(shown):
    choose(shown, "network", "yours, built like Llama")
    fill(shown, "n", 0)
    assert answer(shown).strip() == 'Batch on each device is "0": give a whole number from 1 on.'
    fill(shown, "n", 1)
    fill(shown, "h", 7)
    assert "Hidden size 4096 is not a multiple of 7 heads" in answer(shown)
    assert shown.locator("svg").count() == 0


def test_each_stage_of_zero_has_an_answer_in_each_precision(shown):
    for precision in peaks.PRECISIONS:
        choose(shown, "precision", precision)
        sizes = []
        for strategy in peaks.STRATEGIES:
            choose(shown, "strategy", strategy)
            sizes.append(size(shown))
        assert sizes == sorted(sizes, reverse=True) and len({*sizes}) == len(sizes)


def test_the_keyboard_is_enough(shown):
    shown.get_by_label("Batch on each device").focus()
    before = size(shown)
    shown.keyboard.press("ArrowUp")
    assert size(shown) > before
    shown.get_by_label("Card").focus()
    shown.keyboard.press("ArrowUp")
    assert not answer(shown).startswith("On H100 80GB")


def test_a_phone_needs_no_sideways_scrolling(shown):
    shown.set_viewport_size({"width": 390, "height": 800})
    choose(shown, "network", "yours, built like Llama")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_scripts_the_first_answer_is_there(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(MemoryExplorer()._repr_html_())
    assert MemoryExplorer().answer() in page.get_by_role("status").inner_text()
    context.close()
