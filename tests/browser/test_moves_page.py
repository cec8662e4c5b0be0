"""The collectives in a page: drawn as the plans leave them, by the keys, at rest, on paper."""

import numpy as np
import pytest
from contrast import FAINT
from moving import hold_clock, press, text_without_scripts, words
from numpy_collectives import expected

from d2lmgpu.collectives.operations import COLLECTIVES, collective
from d2lmgpu.course import explorers
from d2lmgpu.figures.moves import RANKS, states

KINDS = [(name, algorithm) for name, algorithms in COLLECTIVES.items() for algorithm in algorithms]
MOVING = ".moves-pair .moves-moving"


@pytest.fixture(scope="module")
def html():
    return f"<article>{explorers.collectives()._repr_html_()}</article>"


@pytest.fixture
def moves(show_offline, html):
    return show_offline(html)


def choose(page, name, k=4, algorithm=None):
    page.get_by_role("combobox", name="Collective").select_option(name)
    page.get_by_role("combobox", name="Ranks").select_option(str(k))
    if len(COLLECTIVES[name]) > 1:
        page.get_by_role("combobox", name="Algorithm").select_option(
            algorithm or next(iter(COLLECTIVES[name]))
        )


def pictures(page, k, place, result=False):
    """Of each picture there, rank by rank, what its slots hold: "a0+1", or nothing.

    result: only what the call gives.
    """
    others = ".moves-moving, .moves-left" if result else ".moves-moving"
    cells = page.locator(f"{place} svg").evaluate_all(
        """(all, others) => all.map((svg) => [...svg.querySelectorAll(".moves-cell")]
            .filter((cell) => !cell.matches(".moves-moving"))
            .map((cell) => (cell.matches(others) ? "" : cell.dataset.holds)))""",
        others,
    )
    return [[held[rank * k : (rank + 1) * k] for rank in range(k)] for held in cells]


def as_drawn(wanted, held):
    """A state of a plan as the picture shows it: element by element, without the explorer."""
    k = wanted.schedule.num_devices
    letters = ["here"] * k if wanted.name == "barrier" else "abcd"

    def cell(rank, slot):
        places = [slot]
        if wanted.name == "all_to_all":
            places = [slot * k + rank, rank * k + slot]
        place = next((place for place in places if held[rank][place]), None)
        if place is None:
            return ""
        ranks = [str(of) for of in range(k) if held[rank][place] >> of & 1]
        return letters[place % k] + "+".join(ranks)

    return [[cell(rank, slot) for slot in range(k)] for rank in range(k)]


@pytest.mark.parametrize(("name", "algorithm"), KINDS)
def test_each_round_is_drawn_as_the_plan_leaves_it(moves, name, algorithm):
    for k in RANKS:
        choose(moves, name, k, algorithm)
        wanted = collective(name, k, k, algorithm)
        after = [as_drawn(wanted, held) for held in states(wanted)]
        assert pictures(moves, k, ".moves-pair") == [after[0], after[-1]]
        for back in reversed(after[:-1]):
            press(moves, "Back")
            assert pictures(moves, k, ".moves-pair")[1] == back
        assert pictures(moves, k, ".moves-strip") == after, "the strip that is printed"


def test_the_last_pictures_show_what_numpy_says(moves):
    k = 3
    given = np.random.default_rng(1).integers(1, 1000, (k, k))
    for name in COLLECTIVES:
        choose(moves, name, k)
        shown = pictures(moves, k, ".moves-pair", result=True)[1]
        for slots, right in zip(shown, expected(name, given), strict=True):
            assert [summed(text, slot, given) for slot, text in enumerate(slots) if text] == list(
                right
            )


def summed(text, slot, given):
    """What a slot holds, "b0+2", as a number, where rank r has the numbers given[r]."""
    letter = text.rstrip("+0123456789")
    place = slot if letter == "here" else "abc".index(letter)
    return sum(given[int(rank), place] for rank in text.removeprefix(letter).split("+"))


def test_what_is_on_its_way_moves_from_the_one_to_the_other(moves):
    choose(moves, "all_reduce", 4, "ring")
    moves.get_by_role("slider").fill("0")
    assert moves.locator(MOVING).count() == 0
    lefts = []
    for at in ("20", "80", "120"):  # of the first of six rounds, which ends at 167
        moves.get_by_role("slider").fill(at)
        assert moves.locator(MOVING).count() == 4, "one part of each rank"
        lefts.append(moves.locator(MOVING).first.bounding_box()["x"])
    assert lefts == sorted(lefts) and lefts[0] < lefts[2], "rank 0's goes to the right"


def test_play_goes_to_the_end_and_escape_stops_it(moves):
    choose(moves, "broadcast", 4, "tree")
    hold_clock(moves)
    press(moves, "Play")  # from the beginning, since all is over
    moves.clock.run_for(900)  # of two rounds of 1.8 seconds
    assert moves.locator(MOVING).count() == 4
    assert "Before:" in words(moves)
    moves.keyboard.press("Escape")
    assert moves.get_by_role("button", name="Play").is_visible()
    stopped = moves.get_by_role("slider").input_value()
    moves.clock.run_for(4000)
    assert moves.get_by_role("slider").input_value() == stopped
    press(moves, "Play")
    moves.clock.run_for(4000)
    assert moves.get_by_role("button", name="Play").is_visible()
    assert moves.get_by_role("slider").input_value() == "1000"


def test_with_reduced_motion_nothing_glides(moves):
    moves.emulate_media(reduced_motion="reduce")
    choose(moves, "all_gather", 4, "ring")
    hold_clock(moves)
    press(moves, "Play")
    wanted = collective("all_gather", 4, 4, "ring")
    after = [as_drawn(wanted, held) for held in states(wanted)]
    for held in after[1:]:
        moves.clock.run_for(450)
        assert moves.locator(MOVING).count() == 0
        moves.clock.run_for(450)
        assert pictures(moves, 4, ".moves-pair")[1] == held
        assert moves.locator(MOVING).count() == 0
    assert moves.get_by_role("button", name="Play").is_visible()


def test_the_keys_are_enough_and_the_words_say_who_holds_what(moves):
    moves.get_by_role("combobox", name="Collective").focus()
    for _ in range(4):
        moves.keyboard.press("ArrowDown")
    assert moves.locator("code").inner_text() == "dist.reduce_scatter_tensor(out, x)"
    clock = moves.get_by_role("slider")
    clock.focus()
    moves.keyboard.press("Home")
    assert words(moves).startswith("Before: Rank 0: a0, b0, c0, d0.")
    moves.keyboard.press("ArrowRight")
    text = words(moves)
    assert text.startswith("After round 1 of 3: Rank 0: a0, b0, c0 + c3, d0. ")
    assert "Round 1 of 3: rank 0 sends d0 to rank 1; rank 1 sends a1 to rank 2" in text
    assert "Rank 0: a0, b0, c0 + c3, d0." in clock.get_attribute("aria-valuetext")
    label = moves.locator(".moves-pair svg").nth(1).get_attribute("aria-label")
    assert label.startswith("reduce_scatter over 4 ranks, after round 1 of 3. Rank 0: a0, b0,")
    moves.keyboard.press("ArrowLeft")
    assert words(moves).startswith("Before:")
    moves.get_by_role("button", name="Next").focus()
    moves.keyboard.press("Enter")
    assert words(moves) == text
    assert moves.get_by_role("img").count() == 2, "the strip for paper is not read aloud"


def test_the_address_brings_the_same_moment_back(moves):
    choose(moves, "reduce_scatter", 4, "ring")
    for rounds in (2, 1):  # thirds, which no address has with all their digits
        press(moves, "Back")
        text, address = words(moves), moves.url
        moves.goto("about:blank")
        moves.goto(address)
        assert words(moves) == text and f"After round {rounds} of 3" in text
        assert moves.locator(MOVING).count() == 0
    moves.goto("about:blank")
    moves.goto(address.split("#")[0] + "#explorer-1?collective=none&ranks=9&algorithm=x&at=y")
    assert moves.locator("code").inner_text() == "dist.broadcast(x, src=0)"


def test_on_paper_the_strip_stands_in_place_of_the_controls(moves):
    choose(moves, "reduce", 4, "tree")
    assert not moves.locator(".moves-strip").is_visible()
    moves.emulate_media(media="print")
    titles = moves.locator(".moves-strip strong").all_inner_texts()
    assert titles == ["Before", "After round 1 of 2", "After"]
    assert "Over 4 ranks, tree: 2 rounds" in moves.locator("article").inner_text()
    assert moves.locator(":is(select, button, input):visible").count() == 0


def test_one_collective_alone_has_nothing_else_to_choose(show_offline):
    page = show_offline(explorers.collectives("barrier", ranks=2)._repr_html_())
    names = ("Collective", "Ranks", "Algorithm")
    shown = [page.get_by_role("combobox", name=name).count() for name in names]
    assert shown == [0, 1, 0]


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_and_its_letters_can_be_read(moves, width):
    moves.set_viewport_size({"width": width, "height": 900})
    choose(moves, "all_reduce", 4, "ring")
    assert moves.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [svg.bounding_box() for svg in moves.locator(".moves-pair svg").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width == 1280), "side by side where there is room"
    assert min(10.5 * box["width"] / 340 for box in boxes) >= 9
    room = moves.locator(".moves-pair .moves-cell:has(text)").evaluate_all(
        """all => all.map((cell) => {
            const [outer, inner] = [".moves-frame", "text"]
                .map((part) => cell.querySelector(part).getBoundingClientRect());
            return Math.min(inner.left - outer.left, outer.right - inner.right);
        })"""
    )
    assert len(room) == 32 and min(room) > 0


def test_what_it_says_can_be_read_on_what_lies_below(moves):
    choose(moves, "all_reduce", 4, "ring")
    read = moves.evaluate(FAINT, ".moves")
    assert read["count"] > 40 and read["faint"] == []


def test_without_scripts_the_words_are_there(browser, html):
    assert repr(explorers.collectives()) in text_without_scripts(browser, html)
