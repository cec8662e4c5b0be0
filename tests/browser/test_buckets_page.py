"""The timeline of buckets in a page: as planned, by the keys, at rest, on paper."""

import re

import pytest
from contrast import FAINT
from moving import hold_clock, text_without_scripts

from d2lmgpu.course import explorers

SIZES = ["6.4 MB", "12.8 MB", "25.6 MB", "51.2 MB", "all in one"]


@pytest.fixture(scope="module")
def timeline():
    return explorers.buckets()


@pytest.fixture
def buckets(show_offline, timeline):
    return show_offline(f"<article>{timeline._repr_html_()}</article>")


def clock(page):
    return page.get_by_role("slider", name="After")


def choose(page, gpus, size):
    page.get_by_role("combobox", name="GPUs").select_option(gpus)
    page.get_by_role("slider", name="Bucket").fill(str(SIZES.index(size)))


def drawn(page, panel, lane):
    """(start, end) of a lane's spans, in pixels."""
    spans = page.locator("svg").nth(panel).locator(f"rect.buckets-modelled[y='{lane}']")
    return spans.evaluate_all(
        "all => all.map(e => [e.x.baseVal.value, e.x.baseVal.value + e.width.baseVal.value])"
    )


@pytest.mark.parametrize("gpus", ["8", "64", "512"])
def test_spans_are_those_of_the_plan(buckets, timeline, gpus):
    for size in SIZES:
        choose(buckets, gpus, size)
        plans = timeline.plans[gpus]
        total = 0.020 + max(of[-1].end for of in (plans["during"][size], plans["end"]))
        width = buckets.locator("svg").first.evaluate("svg => svg.viewBox.baseVal.width")
        for panel, planned in enumerate((plans["during"][size], plans["end"])):
            right = [
                pytest.approx(
                    [70 + (0.020 + t) / total * (width - 78) for t in (b.start, b.end)], abs=0.01
                )
                for b in planned
            ]
            assert drawn(buckets, panel, 38) == right
            assert len(drawn(buckets, panel, 4)) == 17, "the forward pass and 16 layers"
        text = buckets.get_by_role("status").inner_text()
        count = len(plans["during"][size])
        assert f"in {count} bucket" in text and "All times are modelled." in text


def test_play_lets_buckets_leave_and_escape_stops_it(buckets):
    choose(buckets, "64", "25.6 MB")
    hold_clock(buckets)
    buckets.get_by_role("button", name="Play").click()
    buckets.clock.run_for(3300)  # of eight seconds for 76.6 ms: 31.6 of them
    first, other = buckets.locator(".buckets-panels p").all_inner_texts()
    assert "bucket 1 of 4 (layers 16 to 13) on its way" in first
    assert "on its way" not in other and "backward pass of layer" in other
    buckets.keyboard.press("Escape")
    stopped = clock(buckets).input_value()
    buckets.clock.run_for(5000)
    assert clock(buckets).input_value() == stopped
    buckets.get_by_role("button", name="Play").click()
    buckets.clock.run_for(5000)
    words = buckets.locator(".buckets-panels p").all_inner_texts()
    assert words == ["done after 64.5 ms.", "done after 76.6 ms."]


def test_with_reduced_motion_it_goes_from_end_to_end(buckets):
    buckets.emulate_media(reduced_motion="reduce")
    choose(buckets, "64", "all in one")
    hold_clock(buckets)
    buckets.get_by_role("button", name="Play").click()
    seen = []
    for _ in range(18):  # the forward pass, 16 layers, one exchange
        buckets.clock.run_for(450)
        before = clock(buckets).input_value()
        buckets.clock.run_for(450)
        seen.append(clock(buckets).input_value())
        assert before in ("0", *seen[-2:])
    assert len({*seen}) == 18 and seen[-1] == "1000"
    assert buckets.get_by_role("button", name="Play").is_visible()


def test_the_keys_are_enough(buckets):
    size = buckets.get_by_role("slider", name="Bucket")
    size.focus()
    buckets.keyboard.press("Home")
    assert size.get_attribute("aria-valuetext") == "6.4 MB"
    assert "in 16 buckets" in buckets.get_by_role("status").inner_text()
    clock(buckets).focus()
    buckets.keyboard.press("Home")
    assert "After 0 s of 76.6 ms, modelled" in clock(buckets).get_attribute("aria-valuetext")
    buckets.keyboard.press("ArrowRight")
    text = clock(buckets).get_attribute("aria-valuetext")
    assert text.startswith("After 20 ms of 76.6 ms, modelled.")
    assert "during the backward pass: backward pass of layer 16" in text
    buckets.get_by_role("button", name="Next").focus()
    buckets.keyboard.press("Enter")
    label = buckets.get_by_role("img").first.get_attribute("aria-label")
    assert "bucket 1 of 16 (layer 16) on its way" in label


def test_the_address_brings_the_same_moment_back(buckets):
    choose(buckets, "512", "12.8 MB")
    buckets.get_by_role("button", name="Back").click()
    words, address = buckets.locator("article").inner_text(), buckets.url
    buckets.goto("about:blank")
    buckets.goto(address)
    assert buckets.locator("article").inner_text() == words and "12.8 MB: 75.4 ms" in words
    buckets.goto("about:blank")
    buckets.goto(address.split("#")[0] + "#explorer-1?of=9&bucket=x&at=y")
    assert buckets.get_by_role("status").inner_text().startswith("25.6 MB: 64.5 ms")


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_and_its_letters_can_be_read(buckets, width):
    buckets.set_viewport_size({"width": width, "height": 900})
    choose(buckets, "512", "6.4 MB")
    assert buckets.evaluate("document.documentElement.scrollWidth") <= width
    rooms = buckets.locator("svg").evaluate_all(
        """all => all.map((svg) => {
            const box = svg.getBoundingClientRect();
            const texts = [...svg.querySelectorAll("text")].map((t) => t.getBoundingClientRect());
            const scale = box.width / svg.viewBox.baseVal.width;
            return [12 * scale, ...texts.map((text) =>
                Math.min(text.left - box.left, box.right - text.right))];
        })"""
    )
    for letters, *room in rooms:
        assert letters >= 9 and min(room) >= 0


def test_what_it_says_can_be_read_on_what_lies_below(buckets):
    read = buckets.evaluate(FAINT, ".buckets")
    assert read["count"] > 40 and read["faint"] == []


def test_on_paper_both_are_whole(buckets):
    clock(buckets).fill("300")
    buckets.emulate_media(media="print")
    buckets.evaluate("dispatchEvent(new Event('beforeprint'))")
    words = buckets.locator(".buckets-panels p").all_inner_texts()
    assert [re.sub(r"[\d.]+ ms", "", text) for text in words] == ["done after ."] * 2
    assert buckets.locator(":is(select, button, input):visible").count() == 0
    buckets.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "done" not in buckets.locator(".buckets-panels p").first.inner_text()


def test_without_scripts_the_words_are_there(browser, timeline):
    assert repr(timeline) in text_without_scripts(browser, timeline._repr_html_())
