"""Ring attention in a page: drawn as planned, by the keys, at rest, on paper."""

import pytest
from contrast import FAINT
from moving import choose_ranks as choose
from moving import clock, hold_clock, press, text_without_scripts, words

from d2lmgpu.collectives.ring_attention import contiguous, pairs, zigzag
from d2lmgpu.course import explorers
from d2lmgpu.figures.context import RANKS

DEALS = [contiguous, zigzag]
MOVING = ".context-moving"


@pytest.fixture(scope="module")
def html():
    return f"<article>{explorers.ring_attention()._repr_html_()}</article>"


@pytest.fixture
def context(show_offline, html):
    return show_offline(html)


def shown(page, panel, kind):
    """The pairs of a panel of that class, as they are told to a test, and their numbers."""
    cells = page.locator("svg").nth(panel).locator(f".{kind}[data-pair]")
    return sorted(cells.evaluate_all("all => all.map((e) => [e.dataset.pair, e.textContent])"))


def planned(deal, n, steps):
    held = deal(n)
    return sorted(
        [f"{rank}: {i},{j}", str(step + 1)]
        for step in steps
        for rank in range(n)
        for i, j in pairs(held, rank, step)
    )


@pytest.mark.parametrize("n", RANKS)
def test_each_round_is_drawn_as_it_is_planned(context, n):
    choose(context, n)
    for done in range(n, -1, -1):
        for panel, deal in enumerate(DEALS):
            assert shown(context, panel, "context-over") == planned(deal, n, range(done))
            waiting = [[pair, ""] for pair, _ in planned(deal, n, range(done, n))]
            assert shown(context, panel, "context-waits") == sorted(waiting)
            chunks = context.locator("svg").nth(panel).locator(".context-keys")
            chunks_in_place = chunks.evaluate_all("all => all.map((e) => Number(e.dataset.chunk))")
            held, hops = deal(n), min(done, n - 1)
            assert chunks_in_place == [j for rank in range(n) for j in held[(rank - hops) % n]]
        press(context, "Back")


def test_keys_travel_to_the_next_rank_while_pairs_are_computed(context):
    clock(context).fill("0")
    assert context.locator(MOVING).count() == 0
    lefts = []
    for at in ("50", "125", "200"):
        clock(context).fill(at)
        assert context.locator(MOVING).count() == 2 * 8, "two chunks of each rank, in both"
        lefts.append(context.locator(MOVING).first.bounding_box()["x"])
    assert lefts == sorted({*lefts})
    clock(context).fill("900")  # in the last round nobody needs them any more
    assert context.locator(MOVING).count() == 0


def test_play_goes_to_the_end_and_escape_stops_it(context):
    choose(context, 2)
    hold_clock(context)
    press(context, "Play")
    context.clock.run_for(1200)  # of two rounds of 2.4 seconds
    assert context.locator(MOVING).count() == 8
    context.keyboard.press("Escape")
    stopped = clock(context).input_value()
    context.clock.run_for(6000)
    assert clock(context).input_value() == stopped
    press(context, "Play")
    context.clock.run_for(6000)
    assert clock(context).input_value() == "1000"
    assert context.get_by_role("button", name="Play").is_visible()


def test_with_reduced_motion_nothing_glides(context):
    context.emulate_media(reduced_motion="reduce")
    hold_clock(context)
    press(context, "Play")
    for _ in range(4):
        context.clock.run_for(900)
        assert context.locator(MOVING).count() == 0
    assert clock(context).input_value() == "1000"


def test_the_keys_are_enough_and_the_words_say_who_computes_what(context):
    clock(context).focus()
    context.keyboard.press("Home")
    assert words(context).startswith("Contiguous: Rank 0 has chunks 0 and 1.")
    context.keyboard.press("ArrowRight")
    context.keyboard.press("ArrowRight")
    text = words(context)
    assert "Round 2, pairs computed: rank 0 nothing with the keys of rank 3" in text
    assert "Zigzag: Round 2, pairs computed: rank 0 2 with the keys of rank 3" in text
    assert "rank 0 nothing with the keys" in clock(context).get_attribute("aria-valuetext")
    labels = [img.get_attribute("aria-label") for img in context.get_by_role("img").all()]
    assert labels[0].startswith("Contiguous over 4 ranks, after round 2 of 4. Round 2, pairs")
    assert labels[1].startswith("Zigzag over 4 ranks, after round 2 of 4.")
    context.get_by_role("button", name="Back").focus()
    context.keyboard.press("Enter")
    assert "Round 1, pairs computed" in words(context)


def test_the_address_brings_the_same_moment_back(context):
    choose(context, 3)
    press(context, "Back")
    text, address = words(context), context.url
    assert "Round 2, pairs computed" in text
    context.goto("about:blank")
    context.goto(address)
    assert words(context) == text and context.locator(MOVING).count() == 0
    context.goto("about:blank")
    context.goto(address.split("#")[0] + "#explorer-1?ranks=9&at=y")
    assert "Round 4, pairs computed" in words(context)


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_and_its_letters_can_be_read(context, width):
    context.set_viewport_size({"width": width, "height": 900})
    clock(context).fill("125")
    assert context.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [svg.bounding_box() for svg in context.locator("svg").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width == 1280), "side by side where there is room"
    assert min(12 * box["width"] / 340 for box in boxes) >= 9
    room = context.locator("svg").evaluate_all(
        """all => all.flatMap((svg) => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].filter((t) => t.textContent).map((t) => {
                const text = t.getBoundingClientRect();
                return Math.min(text.left - box.left, box.right - text.right);
            });
        })"""
    )
    assert len(room) > 60 and min(room) >= 0


def test_what_it_says_can_be_read_on_what_lies_below(context):
    read = context.evaluate(FAINT, ".context")
    assert read["count"] > 40 and read["faint"] == []


def test_on_paper_all_rounds_are_there(context):
    clock(context).fill("300")
    context.emulate_media(media="print")
    context.evaluate("dispatchEvent(new Event('beforeprint'))")
    for panel, deal in enumerate(DEALS):
        assert shown(context, panel, "context-over") == planned(deal, 4, range(4))
    assert context.locator(":is(select, button, input):visible").count() == 0
    context.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown(context, 0, "context-over") == planned(contiguous, 4, range(1))


def test_without_scripts_the_words_are_there(browser, html):
    assert repr(explorers.ring_attention()) in text_without_scripts(browser, html)
