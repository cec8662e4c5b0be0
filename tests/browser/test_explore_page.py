"""An explorer in a page that is a file, with the network cut; and in a real JupyterLab."""

import nbformat
import pytest
from pages import open_notebook, run_all

from d2lmgpu.course import explorers
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.site import inlined


def answer(machine, k):
    said = f"<p>{k} on <b>{machine}</b></p>"
    if k == 1:
        return said
    return [f"{said}\n<p>round {step}</p>\n<svg width='400' height='9'></svg>" for step in range(k)]


CONTROLS = {"Machine": {"Fast & <new>": "A", "Slow": "B"}, "Devices": [1, 2, 4]}


@pytest.fixture
def shown(show_offline):
    """The explorer, opened."""
    return show_offline(Explorer(answer, CONTROLS)._repr_html_())


def said(page):
    return page.get_by_role("status").inner_text().split("\n")


def test_each_choice_has_its_answer(shown):
    assert said(shown) == ["1 on A"]
    shown.get_by_label("Devices").select_option("4")
    assert said(shown)[0] == "4 on A"
    shown.get_by_label("Machine").select_option("Slow")
    assert said(shown)[0] == "4 on B"
    shown.get_by_label("Machine").select_option("Fast & <new>")
    shown.get_by_label("Devices").select_option("1")
    assert said(shown) == ["1 on A"]


def test_steps_go_on_and_back_and_start_afresh_with_a_choice(shown):
    back, following = (shown.get_by_role("button", name=name) for name in ("Back", "Next"))
    assert back.is_disabled() and following.is_disabled()
    shown.get_by_label("Devices").select_option("4")
    for step in (1, 2, 3):
        following.click()
        assert said(shown)[-1] == f"round {step}"
        assert shown.get_by_label(f"Step {step} of 3").input_value() == str(step)
    assert following.is_disabled()
    back.click()
    assert said(shown)[-1] == "round 2"
    shown.get_by_label("Devices").select_option("2")
    assert said(shown) == ["2 on A", "", "round 0"]
    assert back.is_disabled()


def test_the_keyboard_is_enough(shown):
    shown.get_by_label("Devices").focus()
    shown.keyboard.press("ArrowDown")
    assert said(shown)[0] == "2 on A"
    shown.keyboard.press("Tab")
    shown.keyboard.press("ArrowRight")
    assert said(shown)[-1] == "round 1"
    shown.keyboard.press("Tab")
    shown.keyboard.press("Enter")
    assert said(shown)[-1] == "round 0"


def test_every_control_has_a_name(shown):
    names = shown.locator(".explore").aria_snapshot()
    assert 'combobox "Machine"' in names and 'combobox "Devices"' in names
    shown.get_by_label("Devices").select_option("2")
    names = shown.locator(".explore").aria_snapshot()
    assert 'slider "Step 0 of 1"' in names and 'button "Next"' in names


def test_a_narrow_screen_needs_no_sideways_scrolling(shown):
    shown.set_viewport_size({"width": 360, "height": 800})
    shown.get_by_label("Devices").select_option("4")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_scripts_the_first_answer_is_there(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(Explorer(answer, CONTROLS)._repr_html_())
    assert said(page) == ["1 on A"]
    context.close()


def test_in_the_book_one_script_serves_all_explorers_of_a_page(show_offline, monkeypatch):
    script = inlined("figures/explorer.js")
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    page = show_offline(script + 2 * Explorer(answer, CONTROLS)._repr_html_())
    assert page.locator("script:not([type])").count() == 1
    for number in range(2):
        page.get_by_label("Devices").nth(number).select_option("4")
        page.get_by_role("button", name="Next").nth(number).click()
        assert page.get_by_role("status").nth(number).inner_text().endswith("round 1")


def test_an_explorer_answers_in_a_notebook_too(server, page):
    cell = nbformat.v4.new_code_cell(
        "from d2lmgpu.figures.explorer import Explorer\n"
        "Explorer(lambda k: f'{2 * k} links', {'Devices': [1, 2]})"
    )
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=kernel)
    nbformat.write(notebook, server.notebooks / "lab.ipynb")
    open_notebook(page, server)
    run_all(page)
    page.locator(".explore-answer", has_text="2 links").wait_for()
    page.locator(".explore select").select_option("2")
    page.locator(".explore-answer", has_text="4 links").wait_for()


def test_the_chapters_explorers_answer_with_the_network_cut(shown, tmp_path):
    """The numbers that the page shows are those that the package computes."""
    file = tmp_path / "chapters.html"
    both = [make()._repr_html_() for make in (explorers.cost, explorers.overlap)]
    file.write_text("<title>x</title>" + "".join(both))
    shown.goto(file.as_uri())
    choose = {"Training": "ResNet-18, 256 images, DDP: RTX 4090", "GPUs": "4"}
    for label, value in choose.items():
        shown.get_by_role("combobox", name=label, exact=True).first.select_option(value)
    published = 6924 / 2107  # images a second on four GPUs and on one, smolix/d2l-neu
    assert f"{published:.3g} on 4 GPUs" in shown.get_by_role("status").first.inner_text()

    shown.get_by_role("combobox", name="Bucket").select_option("all in one")
    assert "0% are hidden" in shown.get_by_role("status").nth(1).inner_text()

    shown.set_viewport_size({"width": 360, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
