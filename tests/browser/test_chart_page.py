"""Charts in a page answer to the pointer and to the keyboard, and are complete without a script."""

from xml.etree import ElementTree

import pytest
from training_page import ASSETS

from d2lmgpu.figures import charts, diagrams, sends, svg
from d2lmgpu.figures.explorer import Explorer

MEASURED = {"LeNet": {1: 1, 2: 1.8}}
MODELLED = {"LeNet": {1: 1, 2: 1.9, 4: 3.5}}
LANES = {"GPU 0": [(0, 2, "compute"), (3, 4, "send")], "GPU 1": [(0, 4, "compute")]}


@pytest.fixture
def show(show_offline):
    """Opens a page with a chart and what the pages add to it."""

    def show(chart, script=True):
        style = (ASSETS / "pages" / "pages.css").read_text()
        code = (ASSETS / "pages" / "charts.js").read_text() if script else ""
        picture = chart if isinstance(chart, str) else chart.svg()
        return show_offline(
            f'<style>{style}</style><article class="cell_output"><div class="explore-answer">'
            f"{picture}</div></article><script>{code}</script>"
        )

    return show


def scaling():
    return charts.scaling(MEASURED, MODELLED, "Two pay, four do not", "times as fast")


def texts(page):
    return page.locator(".chart-tip span").all_text_contents()


def point(page, series, at):
    """Move the pointer to a point of a curve: to where the picture has drawn it."""
    where = page.locator(f'[data-series="{series}"] path[clip-path]').first.evaluate(
        """(path, at) => {
            const [x, y] = path.getAttribute("d").split("\\n")[at].match(/[\\d.]+/g).map(Number);
            const seen = new DOMPoint(x, y).matrixTransform(path.getScreenCTM());
            return [seen.x, seen.y];
        }""",
        at,
    )
    page.mouse.move(*where)


def ends(element):
    """Where an element begins and ends, from left to right."""
    box = element.bounding_box()
    return box["x"], box["x"] + box["width"]


@pytest.mark.parametrize("width", [360, 1200])
def test_the_pointer_reads_every_curve_at_its_place(show, width):
    page = show(scaling())
    page.set_viewport_size({"width": width, "height": 700})
    point(page, 1, 1)
    assert texts(page) == ["devices 2", "LeNet, measured 1.8", "LeNet, modelled 1.9"]
    point(page, 1, 2)
    assert texts(page) == ["devices 4", "LeNet, modelled 3.5"]
    inside = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert inside and page.locator(".chart-tip").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".chart-tip").is_hidden()
    point(page, 1, 0)
    page.mouse.move(1, 690)
    assert page.locator(".chart-tip").is_hidden()


def test_the_keyboard_reads_and_switches_series(show):
    page = show(scaling())
    reader = page.get_by_role("slider")
    page.keyboard.press("Tab")
    for place, words in enumerate(["devices 1:", "devices 2:", "devices 4:"]):
        assert reader.get_attribute("aria-valuetext").startswith(words)
        assert reader.input_value() == str(place) and page.locator(".chart-tip").is_visible()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    button = page.get_by_role("button", name="LeNet, measured")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator('[data-series="0"]').is_hidden()
    point(page, 1, 1)
    assert texts(page) == ["devices 2", "LeNet, modelled 1.9"]
    page.get_by_role("button", name="LeNet, modelled").click()
    assert reader.is_disabled()
    button.click()
    point(page, 0, 1)
    assert texts(page) == ["devices 2", "LeNet, measured 1.8"]


def test_a_lane_is_read_where_the_pointer_is(show):
    page = show(charts.timeline(LANES, "One waits", "measured"))
    box = page.locator("svg").bounding_box()
    spans = page.locator('[data-series="0"] path').all()
    for span, where in zip(spans, ["GPU 0, 0 to 2 ms", "GPU 1, 0 to 4 ms"], strict=True):
        at = span.bounding_box()
        assert box["x"] < at["x"]
        page.mouse.move(at["x"] + 0.2 * at["width"], at["y"] + at["height"] / 2)
        assert texts(page) == [where, "compute"]


def test_a_chart_that_an_explorer_shows_later_answers_too(show):
    page = show(scaling())
    page.evaluate(
        "svg => { document.querySelector('.explore-answer').innerHTML = svg }",
        charts.bars({"one": 2}, {"one": 3}, "Another", "seconds").svg(),
    )
    box = page.locator(".chart svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert texts(page) == ["one", "measured 2", "modelled 3"]


def test_a_small_picture_of_an_explorer_answers_too(show):
    page = show(svg.scaling({}, {1: 1, 2: 1.9, 4: 3.5}, {}, 4, "Speedup"))
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert texts(page) == ["2 GPUs", "modelled 1.9"]
    dot = page.locator("circle").bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    assert texts(page) == ["4 GPUs", "modelled 3.5"]
    page = show(sends.overlapping(0.001, 0.002, [(0.001, 0.004)], "A step"))
    send = page.locator("rect").last.bounding_box()
    page.mouse.move(send["x"] + 1, send["y"] + send["height"] / 2)
    assert texts(page) == ["network, 1 to 4 ms", "sends"]


def test_the_keyboard_reads_a_picture_in_an_explorer(show):
    def answer(k):
        return svg.scaling({}, {1: 1, 2: 1.9, 4: 3.5}, {}, k, "Speedup")

    page = show(Explorer(answer, {"GPUs": [1, 2, 4]})._repr_html_())
    reader = page.locator(".chart-reader")
    for _ in range(2):  # of the first answer, and of the next one
        reader.focus()
        page.keyboard.press("ArrowRight")
        assert texts(page) == ["2 GPUs", "modelled 1.9"]
        page.keyboard.press("ArrowRight")
        assert texts(page) == ["4 GPUs", "modelled 3.5"]
        page.get_by_label("GPUs").select_option("4")
        reader = page.locator(".chart-reader")


def test_on_a_phone_text_can_be_read_and_every_value_reached(show):
    page = show(scaling())
    page.set_viewport_size({"width": 360, "height": 700})
    sizes = page.locator("svg text").evaluate_all(
        """all => all.map(e => {
            const { a, b } = e.getScreenCTM(); // one of them is 0 where text stands upright
            return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(a, b);
        })"""
    )
    assert min(sizes) >= 9
    box = page.locator(".explore-answer")
    page.keyboard.press("Tab")
    for _ in range(3):
        seen = box.bounding_box()
        for what in (".chart-line", ".chart-tip"):
            at = page.locator(what).bounding_box()
            assert (
                seen["x"] <= at["x"] + 1 and at["x"] + at["width"] <= seen["x"] + seen["width"] + 1
            )
        page.keyboard.press("ArrowRight")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth"), "all of it is shown"


@pytest.mark.parametrize("width", [320, 360, 390, 1280])
def test_a_picture_is_shown_whole(show, width):
    page = show(diagrams.split_data(2))
    page.set_viewport_size({"width": width, "height": 700})
    assert page.locator("svg").bounding_box()["width"] <= width
    assert page.locator("[tabindex]").count() == 0, "nothing must be moved"


def test_nothing_moves_for_it_and_nothing_is_missing_without_it(show):
    sizes = [show(scaling(), script).locator("article").bounding_box() for script in (False, True)]
    assert sizes[0] == sizes[1]
    picture = ElementTree.fromstring(scaling().svg())
    assert "LeNet, measured" in " ".join(picture.itertext())
