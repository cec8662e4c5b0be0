"""The first page's question: a guess, two bars, the outcome, what an update was made of."""

import pytest
from training_page import FAKE, press, rows, wait_for


@pytest.fixture
def race(show_panel):
    """Opens a page with the race, of which a function of the settings tells how it goes."""

    def race(story, guess="1", words="losses are identical"):
        page = show_panel(f"const story = {story};{FAKE}", race="")
        page.get_by_label("how many times as fast").fill(guess)
        press(page, "One device, then two")
        wait_for(page, words)
        return page

    return race


def widths(page, *names):
    return [page.locator(f".race-{name}").first.bounding_box()["width"] for name in names]


@pytest.mark.parametrize("seconds, times", [("1", "2.00"), ("4", "0.50"), ("2.2", "0.91")])
def test_the_bars_are_as_long_as_the_seconds_and_the_verdict_says_how_many_times(
    race, seconds, times
):
    page = race(f"s => ({{ seconds: s.devices === 1 ? 2 : {seconds} }})")
    first, second = widths(page, "one", "two")
    assert first / second == pytest.approx(2 / float(seconds), rel=0.02)
    verdict = page.locator(".race-verdict").inner_text()
    assert verdict.startswith(times) and "1.00" in verdict
    right = page.locator(".race-lanes").bounding_box()
    seen = page.locator(".race-lanes b").last.bounding_box()
    assert seen["x"] + seen["width"] <= right["x"] + right["width"]


def test_a_good_guess_is_called_so_and_its_mark_stands_at_the_bar_s_end(race):
    page = race("s => ({ seconds: 2 / s.devices })", guess="2")
    assert "as you guessed" in page.locator(".race-verdict").inner_text()
    bar, mark = (page.locator(name).bounding_box() for name in (".race-two", ".race-lanes u"))
    assert mark["x"] == pytest.approx(bar["x"] + bar["width"], abs=4)


def test_an_update_is_taken_apart_to_one_scale(race):
    page = race("s => ({ seconds: 2 / s.devices })")  # a tenth of an update is allreduce
    alone, computed = page.locator(".race-why div .race-compute").all()[:2]
    exchanged = page.locator(".race-why div .race-exchange").first
    whole = alone.bounding_box()["width"]
    assert computed.bounding_box()["width"] / whole == pytest.approx(0.45, rel=0.03)
    assert exchanged.bounding_box()["width"] / whole == pytest.approx(0.05, rel=0.1)
    text = page.locator(".race-why > p").inner_text()
    assert "2000 ms" in text.replace(",", "") and "less than was saved" in text


@pytest.mark.parametrize("story", ["s => ({ hidden: true })", "s => ({ how: 'stopped' })"])
def test_what_cannot_be_compared_gets_no_verdict(race, story):
    page = race(story, words="")
    page.locator(".training-contrast").wait_for()
    assert page.locator(".race-verdict").inner_text() == ""
    assert not page.locator(".race-why").is_visible()


def test_afterwards_a_case_in_which_two_may_not_pay_is_one_press_away(show_panel):
    page = show_panel(network="lenet", batch_size=1024, epochs=1, race="")
    contrast = page.get_by_role("button", name="Shorter steps")
    assert contrast.count() == 0
    press(page, "One device, then two")
    wait_for(page, "losses are identical")
    contrast.click()
    page.locator(".training-said", has_text="Training: Softmax").wait_for()
    wait_for(page, "losses are identical")
    page.locator(".race-more > summary").click()
    assert [row[1:5] for row in rows(page)[-2:]] == [
        ["Softmax regression", "1", "–", "16"],
        ["Softmax regression", "2", "tree", "16"],
    ]


def test_the_keyboard_is_enough_and_a_telephone_wide_enough(show_panel):
    page = show_panel(f"const story = s => ({{ seconds: 1 / s.devices }});{FAKE}", race="")
    page.set_viewport_size({"width": 360, "height": 800})
    keys = page.keyboard
    keys.press("Tab")
    keys.press("ArrowRight")
    assert page.locator(".race-guess output").inner_text() == "1.05 times"
    keys.press("Tab")
    keys.press("Enter")
    wait_for(page, "identical")
    assert page.evaluate("document.activeElement.className") == "training-pair"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for part in page.locator(".race :is(p, b, i, output, button)").all():
        box = part.bounding_box()
        assert box is None or box["x"] + box["width"] <= 360
