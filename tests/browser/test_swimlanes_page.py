"""Ranks in lanes in a page: row by row, by the keys, at rest, on paper, and without scripts."""

import pytest
from contrast import FAINT
from moving import clock, hold_clock, press, text_without_scripts, words

from d2lmgpu.figures.swimlane_pictures import (
    data_parallel_beside_ddp,
    micro_batches,
    processes,
    sampler_places,
)

SAMPLER = sampler_places(
    [
        [[(1, True), (2, True)], [(3, True)]],
        [[(0, True), (6, True)], [(1, False)]],
        [[(4, True), (5, True)], [(0, False)]],
    ]
)
MICRO = micro_batches(
    {
        "without no_sync": [["forward", 8016] * 4] * 2,
        "no_sync around all but the last": [["forward"] * 4 + [8016]] * 2,
    }
)
HOSTS = processes([(f"host {rank // 4}", rank, rank % 4, 8) for rank in range(8)])
PARALLEL = data_parallel_beside_ddp(44_700_000, 1_605_632, 20_480)
PICTURES = {"sampler": SAMPLER, "micro": MICRO, "hosts": HOSTS, "parallel": PARALLEL}
EVERY = pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
DOT = ".swimlanes-dot"
STEPS = len(PARALLEL.panels[0].rows)


def html(picture):
    return f"<article>{picture._repr_html_()}</article>"


@pytest.fixture
def parallel(show_offline):
    return show_offline(html(PARALLEL))


def seen(page):
    """How many rows of each panel are seen."""
    count = """all => all.map((svg) => [...svg.querySelectorAll("[data-row]")].filter(
        (row) => getComputedStyle(row).visibility === "visible").length)"""
    return page.locator("svg").evaluate_all(count)


@EVERY
def test_step_by_step_the_rows_come_and_are_said(show_offline, picture):
    page = show_offline(html(picture))
    number = len(picture.panels[0].rows)
    for done in range(number, -1, -1):
        assert seen(page) == [done] * len(picture.panels)
        for i, panel in enumerate(picture.panels):
            label = page.get_by_role("img").nth(i).get_attribute("aria-label")
            assert label.startswith(f"{panel.name}. ")
            labelled = [row.words in label for row in panel.rows]
            assert labelled[:done] == [True] * done or done == 0
            if done:
                assert panel.rows[done - 1].words in words(page)
        press(page, "Back")


def test_play_moves_what_is_sent_and_escape_stops_it(parallel):
    hold_clock(parallel)
    press(parallel, "Play")
    parallel.clock.run_for(600)  # of nine steps of 1.3 seconds
    assert parallel.locator(DOT).count() == 3 and seen(parallel) == [1, 1]
    places = [float(dot.get_attribute("cx")) for dot in parallel.locator(DOT).all()]
    assert places == sorted(places) and places[0] < places[2]
    parallel.keyboard.press("Escape")
    stopped = clock(parallel).input_value()
    parallel.clock.run_for(6000)
    assert clock(parallel).input_value() == stopped
    press(parallel, "Play")
    parallel.clock.run_for(14000)
    assert clock(parallel).input_value() == "1000" and parallel.locator(DOT).count() == 0
    assert seen(parallel) == [STEPS, STEPS]
    assert parallel.get_by_role("button", name="Play").is_visible()


def test_a_dot_is_as_far_on_its_way_as_the_moment_says(parallel):
    at = 160 / 1000
    clock(parallel).fill("160")
    part = at * STEPS - 1
    for send in parallel.locator("[data-row='1'] [data-send]").all():
        arrow, dot = send.locator("path").bounding_box(), send.locator(DOT).bounding_box()
        there = arrow["x"] + arrow["width"] * part * part * (3 - 2 * part)  # slow at both ends
        assert dot["x"] + dot["width"] / 2 == pytest.approx(there, abs=1)


def test_with_reduced_motion_nothing_glides(parallel):
    parallel.emulate_media(reduced_motion="reduce")
    hold_clock(parallel)
    press(parallel, "Play")
    for done in range(1, STEPS + 1):
        parallel.clock.run_for(900)
        assert parallel.locator(DOT).count() == 0 and seen(parallel) == [done, done]
    assert clock(parallel).input_value() == "1000"


def test_the_keys_are_enough(parallel):
    clock(parallel).focus()
    parallel.keyboard.press("Home")
    assert words(parallel).startswith("The step before is over.") and seen(parallel) == [0, 0]
    for _ in range(2):
        parallel.keyboard.press("ArrowRight")
    shown = words(parallel)
    assert "DataParallel, one process: Each device gets a copy. 3 × 44.7 MB leave" in shown
    assert "Each device gets a copy." in clock(parallel).get_attribute("aria-valuetext")
    parallel.get_by_role("button", name="Back").focus()
    parallel.keyboard.press("Enter")
    assert "Each device gets its shard." in words(parallel)


def test_the_address_brings_the_same_moment_back(parallel):
    for _ in range(4):
        press(parallel, "Back")
    shown, address = words(parallel), parallel.url
    parallel.goto("about:blank")
    parallel.goto(address)
    assert words(parallel) == shown and seen(parallel) == [STEPS - 4] * 2


@pytest.mark.parametrize("width", [360, 390, 1280])
@EVERY
def test_it_fits_and_no_letters_lie_on_others(show_offline, width, picture):
    page = show_offline(html(picture))
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in (svg.bounding_box() for svg in page.locator("svg").all()):
        assert 11 * box["width"] / 340 >= 9
    apart, outside = page.locator("svg").evaluate_all(
        """all => {
            const of = (svg) => [...svg.querySelectorAll("text")].map(
                (text) => text.getBoundingClientRect());
            const gap = (a, b) => Math.max(
                a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom);
            const apart = all.flatMap((svg) => of(svg).flatMap(
                (a, i, boxes) => boxes.slice(0, i).map((b) => gap(a, b))));
            const outside = all.flatMap((svg) => of(svg).filter(
                ({ right }) => right > svg.getBoundingClientRect().right));
            return [apart, outside.length];
        }"""
    )
    assert len(apart) > 30 and min(apart) > -3 and outside == 0


@EVERY
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_it_says_can_be_read_on_what_lies_below(show_offline, picture, scheme):
    grounds = "<style>body{background:#fff;color:#222832}@media(prefers-color-scheme:dark)"
    page = show_offline(
        f"{grounds}{{body{{background:#121212;color:#ced6dd}}}}</style>{html(picture)}"
    )
    page.emulate_media(color_scheme=scheme)
    read = page.evaluate(FAINT, ".swimlanes figure")
    assert read["count"] > 10 and read["faint"] == []


def test_on_paper_all_rows_are_there_and_no_controls(parallel):
    clock(parallel).fill("300")
    assert seen(parallel) == [3, 3]  # the third of nine is on its way
    parallel.emulate_media(media="print")
    parallel.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen(parallel) == [STEPS, STEPS] and parallel.locator(DOT).count() == 0
    assert parallel.locator(":is(select, button, input):visible").count() == 0
    parallel.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen(parallel)[0] < STEPS


@EVERY
def test_without_scripts_the_picture_and_its_names_are_there(browser, picture):
    text = text_without_scripts(browser, html(picture))
    for panel in picture.panels:
        assert len(picture.panels) == 1 or panel.name in text
        assert all(row.title in text for row in panel.rows)
