"""An explorer in a page that is a file, with the network cut; and in a real JupyterLab."""

import nbformat
import pytest
from pages import open_notebook, run_all

from d2lmgpu.course import explorers
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.site import inlined


def answer(machine, k):
    return f"<p>{k} on <b>{machine}</b></p>\n<svg width='400' height='9'></svg>"


CONTROLS = {"Machine": {"Fast & <new>": "A", "Slow": "B"}, "Devices": [1, 2, 4]}


@pytest.fixture
def shown(show_offline):
    """The explorer, opened."""
    return show_offline(Explorer(answer, CONTROLS)._repr_html_())


@pytest.fixture
def moved(show_offline):
    """The same in an article, its devices as a slider."""
    explorer = Explorer(answer, CONTROLS, sliders=["Devices"])
    return show_offline(f"<article>{explorer._repr_html_()}</article>")


def words(page):
    return page.get_by_role("status").inner_text().strip().split("\n")


def test_each_choice_has_its_answer(shown):
    assert words(shown) == ["1 on A"]
    shown.get_by_label("Devices").select_option("4")
    assert words(shown)[0] == "4 on A"
    shown.get_by_label("Machine").select_option("Slow")
    assert words(shown)[0] == "4 on B"
    shown.get_by_label("Machine").select_option("Fast & <new>")
    shown.get_by_label("Devices").select_option("1")
    assert words(shown) == ["1 on A"]


def test_the_keyboard_is_enough(moved):
    moved.get_by_label("Machine").focus()
    moved.keyboard.press("ArrowDown")
    assert words(moved) == ["1 on B"]
    moved.keyboard.press("Tab")
    moved.keyboard.press("ArrowRight")
    assert words(moved) == ["2 on B"]
    moved.keyboard.press("End")
    assert words(moved) == ["4 on B"]
    slider = moved.get_by_role("slider", name="Devices")
    assert slider.get_attribute("aria-valuetext") == "4"
    assert moved.locator("label span").inner_text() == "4"


def test_the_choices_are_in_the_address_and_come_back_from_it(moved):
    moved.get_by_label("Machine").select_option("Slow")
    moved.get_by_role("slider").press("End")
    address = moved.url
    for asked, answered in ((address, "4 on B"), (address.replace("=4", "=3"), "1 on B")):
        moved.goto("about:blank")
        moved.goto(asked)
        assert words(moved) == [answered]
    assert moved.locator("select").evaluate("e => e.selectedIndex") == 1


def test_in_a_notebook_the_address_stays_as_it_is(shown):
    address = shown.url
    shown.get_by_label("Devices").select_option("4")
    assert words(shown) == ["4 on A"] and shown.url == address


def test_every_control_has_a_name(shown):
    names = shown.locator(".explore").aria_snapshot()
    assert 'combobox "Machine"' in names and 'combobox "Devices"' in names


def test_a_narrow_screen_needs_no_sideways_scrolling(shown):
    shown.set_viewport_size({"width": 360, "height": 800})
    shown.get_by_label("Devices").select_option("4")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_scripts_the_first_answer_is_there(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(Explorer(answer, CONTROLS)._repr_html_())
    assert words(page) == ["1 on A"]
    context.close()


def test_in_the_book_its_scripts_serve_all_explorers_of_a_page(show_offline, monkeypatch):
    script = inlined("figures/address.js", "figures/explorer.js")
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    page = show_offline(script + 2 * Explorer(answer, CONTROLS)._repr_html_())
    assert page.locator("script:not([type])").count() == 2
    for number in range(2):
        page.get_by_label("Devices").nth(number).select_option("4")
        assert page.get_by_role("status").nth(number).inner_text().strip() == "4 on A"


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
    choose = {"Training": "ResNet-18, 256 images, DDP: RTX 4090", "The batch is": "of each GPU"}
    for label, value in choose.items():
        shown.get_by_role("combobox", name=label, exact=True).first.select_option(value)
    shown.get_by_role("slider", name="GPUs").press("ArrowRight")
    published = 6924 / 2107  # images a second on four GPUs and on one, smolix/d2l-neu
    assert f"{published:.3g} on 4 GPUs" in shown.get_by_role("status").first.inner_text()

    shown.get_by_role("combobox", name="Bucket").select_option("all in one")
    assert "0% are hidden" in shown.get_by_role("status").nth(1).inner_text()

    shown.set_viewport_size({"width": 360, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
