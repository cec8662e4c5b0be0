"""An MLP over ranks in a page: drawn as planned, by the keys, at rest, on paper."""

import pytest
from contrast import FAINT
from moving import choose_ranks as choose
from moving import clock, hold_clock, press, text_without_scripts, words

from d2lmgpu.course import explorers
from d2lmgpu.figures.split import RANKS, as_data

STEPS = len(as_data(2)["steps"])
MOVING = ".split-moving"


@pytest.fixture(scope="module")
def html():
    return f"<article>{explorers.split_mlp()._repr_html_()}</article>"


@pytest.fixture
def split(show_offline, html):
    return show_offline(html)


def shown(page):
    """{"rank: name": (placement, part)} of all that is drawn whole."""
    read = "all => all.map((e) => [e.dataset.held, e.dataset.placement, e.dataset.part])"
    return {held: (how, part) for held, how, part in page.locator("[data-part]").evaluate_all(read)}


def planned(k, done):
    plan = as_data(k)
    held = dict(plan["before"])
    for step in plan["steps"][:done]:
        held |= step["held"]
    return {
        f"{rank}: {name}": (placement, ",".join(map(str, part)))
        for name, (placement, parts) in held.items()
        for rank, part in enumerate(parts)
    }


@pytest.mark.parametrize("k", RANKS)
def test_each_step_is_drawn_as_it_is_planned(split, k):
    choose(split, k)
    for done in range(STEPS, -1, -1):
        assert shown(split) == planned(k, done)
        assert split.locator("[data-made]").count() == 0
        press(split, "Back")


def test_parts_lie_where_the_plan_says(split):
    """Rank 1's columns of A begin where rank 0's end, within the same outline."""
    boxes = [split.locator(f"[data-held='{rank}: A']").bounding_box() for rank in (0, 1)]
    ranks = split.locator("svg").bounding_box()["width"] / 2
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=0.5)
    assert boxes[1]["x"] - ranks == pytest.approx(boxes[0]["x"] + boxes[0]["width"], abs=0.5)
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=0.5)


def test_a_product_grows_from_what_it_reads_and_terms_travel_in_sums_only(split):
    choose(split, 3)
    for step, plan in enumerate(as_data(3)["steps"]):
        clock(split).fill(str(int(1000 * (step + 0.5) / STEPS)))
        used = split.locator("[data-used]").evaluate_all("all => all.map((e) => e.dataset.used)")
        new = {name for name in plan["of"] if f"0: {name}" in planned(3, step)}
        assert set(used) == new and len(used) == 3 * len(new)
        assert split.locator(MOVING).count() == (3 * 2 if plan["sums"] else 0)
        made = split.locator("[data-made]").count()
        assert made == (0 if plan["sums"] else 3 * len(plan["held"]))


def test_play_goes_to_the_end_and_escape_stops_it(split):
    hold_clock(split)
    press(split, "Play")
    split.clock.run_for(700)  # of nine steps of a second and a half
    assert split.locator("[data-made]").count() == 2
    split.keyboard.press("Escape")
    stopped = clock(split).input_value()
    split.clock.run_for(6000)
    assert clock(split).input_value() == stopped
    press(split, "Play")
    split.clock.run_for(15000)
    assert clock(split).input_value() == "1000"
    assert split.get_by_role("button", name="Play").is_visible()


def test_with_reduced_motion_nothing_glides(split):
    split.emulate_media(reduced_motion="reduce")
    hold_clock(split)
    press(split, "Play")
    for _ in range(STEPS):
        split.clock.run_for(900)
        assert split.locator(f"{MOVING}, [data-made]").count() == 0
    assert clock(split).input_value() == "1000"


def test_the_keys_are_enough_and_the_words_say_who_has_what(split):
    clock(split).focus()
    split.keyboard.press("Home")
    assert words(split).startswith("All ranks have X. Each has 6 of 12 columns of A")
    for _ in range(4):
        split.keyboard.press("ArrowRight")
    text = words(split)
    assert text.startswith("Forward, g: the terms of Y are summed.")
    assert "an allreduce of 24 numbers" in text
    assert "an allreduce of 24 numbers" in clock(split).get_attribute("aria-valuetext")
    label = split.get_by_role("img").get_attribute("aria-label")
    assert label.startswith("An MLP over 2 ranks. After 4 of 9 steps. All 2 ranks send")
    split.get_by_role("button", name="Back").focus()
    split.keyboard.press("Enter")
    assert "Each rank has a term of Y" in words(split)


def test_the_address_brings_the_same_moment_back(split):
    choose(split, 3)
    press(split, "Back")
    text, address = words(split), split.url
    assert "Each rank has a term of dX" in text
    split.goto("about:blank")
    split.goto(address)
    assert words(split) == text and shown(split) == planned(3, STEPS - 1)
    split.goto("about:blank")
    split.goto(address.split("#")[0] + "#explorer-1?ranks=9&at=y")
    assert shown(split) == planned(2, STEPS)


@pytest.mark.parametrize("width", [360, 390, 1280])
@pytest.mark.parametrize("k", RANKS)
def test_it_fits_and_its_letters_can_be_read(split, width, k):
    split.set_viewport_size({"width": width, "height": 900})
    choose(split, k)
    assert split.evaluate("document.documentElement.scrollWidth") <= width
    box = split.locator("svg").bounding_box()
    assert 11 * box["width"] / 340 >= 9
    apart = split.locator("svg text").evaluate_all(
        """all => {
            const boxes = all.map((t) => t.getBoundingClientRect());
            return boxes.flatMap((a, i) => boxes.slice(0, i).map((b) => Math.max(
                a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom)));
        }"""
    )
    assert len(apart) > 200 and min(apart) > -2, "no letters upon others"


def test_what_it_says_can_be_read_on_what_lies_below(split):
    read = split.evaluate(FAINT, ".split")
    assert read["count"] > 20 and read["faint"] == []


def test_on_paper_there_is_a_picture_of_each_moment(split):
    clock(split).fill("300")
    split.emulate_media(media="print")
    split.evaluate("dispatchEvent(new Event('beforeprint'))")
    captions = split.locator("figcaption").all_inner_texts()
    assert len(captions) == STEPS + 1 == split.locator("svg").count()
    assert captions[0] == "Before" and captions[4] == "4. Forward, g: the terms of Y are summed"
    assert split.locator(":is(select, button, input):visible").count() == 0
    split.evaluate("dispatchEvent(new Event('afterprint'))")
    assert split.locator("svg").count() == 1


def test_without_scripts_the_words_are_there(browser, html):
    assert repr(explorers.split_mlp()) in text_without_scripts(browser, html)
