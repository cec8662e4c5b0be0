"""The race of two allreduces in a page: on one clock, by the keys, by its address, at rest."""

import re

import pytest
from contrast import FAINT
from moving import hold_clock

from d2lmgpu.collectives.schedules import plan
from d2lmgpu.course import explorers
from d2lmgpu.figures.diagrams import sums_after_rounds


@pytest.fixture(scope="module")
def html():
    return f"<article>{explorers.allreduce()._repr_html_()}</article>"


@pytest.fixture
def race(show_offline, html):
    return show_offline(html)


def words(page):
    return page.get_by_role("status").inner_text()


def held(page, panel):
    """The numbers in the nodes of a picture."""
    texts = page.locator(".race-panels svg").nth(panel).locator("text").all_text_contents()
    return [int(text) for text in texts if text.isdecimal()]


def choose(page, **chosen):
    for name, value in chosen.items():
        page.get_by_role("combobox", name=name).select_option(value)


@pytest.mark.parametrize("algorithm", ["ring", "host", "hierarchical"])
def test_what_is_drawn_after_each_round_is_what_the_plan_makes(race, algorithm):
    options = {"per_machine": 2} if algorithm == "hierarchical" else {}
    drawn = plan(algorithm, 4, 4, **options)
    choose(race, Algorithm=algorithm, against=algorithm, Devices="4")
    for after, counts in enumerate(sums_after_rounds(drawn)):
        assert held(race, 0) == held(race, 1) == counts.flatten().tolist()
        if after < drawn.num_rounds:
            assert f"round {after + 1} of {drawn.num_rounds}" in words(race)
            race.get_by_role("button", name="Next").click()
    assert "done after" in words(race)


def test_both_run_on_one_clock_until_the_slower_one_is_done(race):
    choose(race, Algorithm="ring", against="naive", Devices="4", Gradient="45 MB (ResNet-18)")
    assert words(race) == "ring: round 1 of 6; naive: round 1 of 2."
    hold_clock(race)
    play = race.get_by_role("button", name="Play")
    play.click()
    race.clock.run_for(4000)  # of nine seconds: the ring takes a quarter of naive's time
    assert words(race).startswith("ring: done after 5.42 ms, 6 rounds; naive: round 1 of 2")
    race.clock.run_for(6000)
    assert words(race).count("done after") == 2 and play.is_visible()
    links = race.locator(".race-panels p").all_text_contents()
    assert [re.search(r"(\d+) links, ([\d.]+) MB", text).groups() for text in links] == [
        ("4", "67"),
        ("6", "44.7"),
    ]
    labels = race.locator(".race-panels svg").first.locator(".race-bytes")
    assert labels.all_text_contents() == ["67 MB"] * 4


def test_the_keys_are_enough(race):
    clock = race.get_by_role("slider")
    clock.focus()
    race.keyboard.press("End")
    assert words(race).count("done after") == 2
    race.keyboard.press("Home")
    assert "After 0 s" in clock.get_attribute("aria-valuetext")
    race.get_by_role("button", name="Next").focus()
    race.keyboard.press("Enter")
    assert words(race) == "ring: round 2 of 6; naive: round 1 of 2."
    race.get_by_role("button", name="Back").focus()
    race.keyboard.press("Enter")
    assert words(race) == "ring: round 1 of 6; naive: round 1 of 2."


def test_the_address_brings_the_same_moment_back(race):
    choose(race, Algorithm="tree", Devices="8")
    race.get_by_role("button", name="Next").click()
    text, address = words(race), race.url
    race.goto("about:blank")
    race.goto(address)
    assert words(race) == text and "tree: round 2 of 6" in text
    race.goto("about:blank")
    race.goto(address.split("#")[0] + "#explorer-1?first=none&devices=99&at=x")
    assert words(race).startswith("ring: round 1 of 6")


def test_with_reduced_motion_it_goes_from_round_to_round(race):
    race.emulate_media(reduced_motion="reduce")
    choose(race, Algorithm="ring", against="ring")
    hold_clock(race)
    race.get_by_role("button", name="Play").click()
    for passed in range(6):
        race.clock.run_for(900)
        picture = race.locator(".race-panels svg").first
        assert (
            held(race, 0) == [*sums_after_rounds(plan("ring", 4, 4))][passed + 1].flatten().tolist()
        )
    assert "done after" in words(race) and picture.is_visible()


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_it_fits_and_its_letters_can_be_read(race, width):
    race.set_viewport_size({"width": width, "height": 900})
    choose(race, Algorithm="sharded", against="host", Devices="8")
    assert race.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [svg.bounding_box() for svg in race.locator(".race-panels svg").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width == 1200), "side by side where there is room"
    assert min(12 * box["width"] / 340 for box in boxes) >= 9


def test_what_it_says_can_be_read_on_what_lies_below(race):
    read = race.evaluate(FAINT, ".race")
    assert read["count"] > 20 and read["faint"] == []
