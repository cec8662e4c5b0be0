"""What the panel says of runs that a real engine cannot be made to show: one tells a story."""

import pytest
from training_page import FAKE, press, rows, wait_for, write_page, write_site

NONE = "so no speedup is told"


def page_of(show_panel, story, button="One device, then two", words=NONE, **settings):
    """The page after runs of which ``story``, a function of the settings, tells what is unlike."""
    page = show_panel(f"const story = {story};{FAKE}", **settings)
    press(page, button)
    if words:
        wait_for(page, words)
    return page


def test_a_speedup_is_told(show_panel):
    page = page_of(
        show_panel, "s => ({ seconds: 2 / s.devices })", words="trained 2.00 times as fast"
    )
    assert rows(page)[1][-3:] == ["2.00 times", "0.500", "identical"]


def test_a_slowdown_is_told(show_panel):
    page_of(show_panel, "s => ({ seconds: s.devices })", words="took 2.00 times as long")


@pytest.mark.parametrize("devices", [1, 2])
def test_an_unsteady_run_is_called_so_and_no_speedup_is_told(show_panel, devices):
    """Of four pieces, the last takes half as long again as two before it."""
    story = f"""s => ({{ losses: [1, 0.9, 0.8, 0.5],
                         ends: s.devices === {devices} ? [1, 2, 3, 4.5] : [1, 2, 3, 4] }})"""
    page = page_of(show_panel, story)
    text = page.locator(".training-said").text_content()
    assert "unsteady" in text and "all 4 losses are identical" in text and "as fast" not in text
    assert rows(page)[1][-3] == "unsteady"


@pytest.mark.parametrize("losses", ["[2, NaN]", "[2, 3.5]"])
def test_a_run_that_diverged_is_called_so(show_panel, losses):
    page = page_of(show_panel, f"s => ({{ losses: {losses} }})", "Run", words="diverged")
    assert "diverged" in rows(page)[0][-2]


@pytest.mark.parametrize(
    "how, updates, epochs",
    [
        ("stopped", [], 0),
        ("stopped", [1, 2, 3], 2),
        ("running", [1, 2, 3], 12),
        ("finished", [1, 2, 3], 12),
    ],
)
def test_epochs_that_were_not_reached_do_not_stretch_the_axis(show_panel, how, updates, epochs):
    run = {"how": how, "updates": updates, "epochs": 12, "steps": 2}
    page = show_panel(f"const story = s => ({{}});{FAKE}")
    assert page.evaluate("run => TrainingCharts.epochs(run)", run) == epochs


@pytest.mark.parametrize("devices", [1, 2])
def test_a_hidden_tab_tells_no_speedup(show_panel, devices):
    page = page_of(show_panel, f"s => ({{ hidden: s.devices === {devices} }})")
    assert "tab was hidden" in page.locator(".training-said").text_content()
    assert rows(page)[1][-3] == "tab was hidden"


def test_devices_that_share_cores_tell_no_speedup(show_panel):
    page = page_of(show_panel, "s => ({})", "One device, then four", devices=4)
    assert "reports 2 cores" in page.locator(".training-said").text_content()
    assert rows(page)[1][-3] == "shared cores"


def test_errors_are_shown_in_words_and_the_next_run_is_free(show_panel):
    story = """s => {
        if (s.lr > 1) throw Error("a rate of 9: at most 1");
        return s.devices === 2 ? { how: "failed", message: "no memory for a worker" } : {};
    }"""
    page = page_of(show_panel, story, "Run", words=None, open="")
    page.get_by_role("alert").get_by_text("no memory for a worker").wait_for()
    assert rows(page) == []
    page.get_by_label("Learning rate").fill("9")
    press(page, "Run")
    page.get_by_role("alert").get_by_text("a rate of 9: at most 1").wait_for()
    page.get_by_label("Learning rate").fill("1")
    page.get_by_role("radio", name="1", exact=True).check()
    press(page, "Run")
    wait_for(page, "Finished")
    assert page.get_by_role("alert").count() == 0


def test_what_cannot_be_loaded_is_said(page, panel_site, panel_images):
    write_site(panel_site, panel_images, f"const story = s => ({{}});{FAKE}")
    (panel_site / "_static" / "vendor").unlink()
    write_page(panel_site)
    page.goto((panel_site / "page.html").as_uri())
    press(page, "Run")
    page.get_by_role("alert").get_by_text("could not be loaded").wait_for()
