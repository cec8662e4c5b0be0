"""The break-it lab: recorded in a page of the book, and over numbers that a test has made."""

import shutil
from types import SimpleNamespace

import pytest
from contrast import FAINT
from json_types import fault
from lab_page import SOURCE, sent
from training_page import LINKS, write_theme

from d2lmgpu.course.breaking import forecast, record
from d2lmgpu.course.breaking.keeper import DO, LABELS, Keeper
from d2lmgpu.course.breaking.messages import State
from d2lmgpu.course.breaking.view import BreakItLab
from d2lmgpu.figures.site import BOOK, PACKAGE, embedded

OUTCOME = {
    "name": "worker",
    "title": "Kill a <worker>",
    "said": "the worker on n2",
    "done": True,
    "rows": [["to meet again", "s", 1.0, 2.345], ["updates repeated", "", 13, None]],
    "at": 3.0,
    "seconds": 12.0,
    "lanes": {
        "n1": [["trains", 0, 3.1], ["saves", 1, 1.1], ["silent", 3.1, 5], ["starts Python", 5, 12]],
        "n2": [["trains", 0, 3], ["is away", 3, 12]],
    },
}
BUTTONS = [
    {"name": "worker", "label": "Kill a worker", "seconds": 7.5},
    {"name": "cut", "label": "Cut a link", "seconds": None},
]
SHOWN = {
    "message": "2 ranks train.",
    "buttons": BUTTONS,
    "outcomes": [OUTCOME],
    "runs": True,
    "now": {"seconds": 20, "lanes": {}},
}
OTHERS = {  # another value of each field
    "message": "3 ranks train.",
    "buttons": BUTTONS[:1],
    "outcomes": [OUTCOME | {"said": "the worker on n3"}],
    "now": {"seconds": 20, "lanes": {"n1": [["trains", 0, 20]]}},
    "runs": False,
}


def offered(*broken):
    """The buttons as the process offers them while two ranks train, and these harms last."""
    keeper = Keeper.__new__(Keeper)
    keeper.hosts = SimpleNamespace(names=["n1", "n2"])
    keeper.harm, keeper.trouble, keeper.broken = None, "", {*broken}
    keeper.account = SimpleNamespace(
        newest=lambda: ["a rank", "another"],
        update_seconds=lambda: 0.1,
        lag=lambda: 13,
        starts=lambda: (4.0, 3.0),
    )
    return keeper.buttons()


@pytest.fixture
def draw(show_offline):
    """Opens a page with the lab over numbers, some of them others."""

    def draw(**others):
        code = record.module().partition("export default")[0]
        names = BreakItLab(3).names
        given = embedded(SHOWN | {"provenance": "", "names": names} | others)
        page = show_offline(
            f"<style>{record.styles()}</style><div id='place'></div><script>{code}\n{SOURCE}"
            f"const source = new Source({given});\n"
            "new BreakingLab(document.querySelector('#place'), source);</script>"
        )
        page.locator(".lab-lane").first.wait_for()
        return page

    return draw


@pytest.fixture(params=["light", "dark"])
def book(request, quiet, tmp_path, monkeypatch):
    """A page of the book with the record."""
    monkeypatch.setenv(BOOK, "1")
    write_theme(tmp_path / "_static")
    for room in ("lab", "course/breaking"):
        shutil.copytree(PACKAGE / room / "web", tmp_path / "_static", dirs_exist_ok=True)
    styles = "".join(
        f'<link rel="stylesheet" href="_static/{name}">' for name in ("lab.css", "breaking.css")
    )
    (tmp_path / "page.html").write_text(
        f'<!doctype html><html data-theme="{request.param}"><title>x</title>'
        f'<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">'
        f'{LINKS}{styles}<script src="_static/pages/loader.js"></script>'
        f'<article class="bd-article">{record.Page()._repr_html_()}</article>'
    )
    quiet.context.set_offline(True)
    quiet.goto((tmp_path / "page.html").as_uri())
    quiet.locator(".breaking .lab-lane").first.wait_for()
    return quiet


def test_in_the_book_each_harm_shows_what_was_recorded(book, request):
    dark = "true" if "dark" in request.node.name else "false"
    assert book.locator(".breaking").get_attribute("data-dark") == dark
    outcomes = record.recorded()["outcomes"]
    radios = book.locator(".breaking-outcomes").get_by_role("radio")
    assert radios.count() == len(outcomes) >= 7
    radios.first.focus()
    for outcome in outcomes:
        caption = book.locator(".breaking-picture strong").inner_text()
        assert caption == f"{outcome['title']}: {outcome['said']}"
        assert book.locator(".lab-lane [role=img]").count() == 3
        drawn = book.locator(".lab-lane [role=img] i").count()
        assert drawn == sum(map(len, outcome["lanes"].values()))
        head = book.locator(".lab-table thead").inner_text().split()
        assert head == ["predicted", "recorded"]
        assert book.locator(".lab-table tbody tr").count() == len(outcome["rows"])
        book.keyboard.press("ArrowRight")
    assert book.locator("button").count() == 0, "nothing can be harmed here"
    assert "recorded on" in book.locator(".lab-message").inner_text()
    for width in (1280, 360):
        book.set_viewport_size({"width": width, "height": 4000})
        assert book.evaluate("document.documentElement.scrollWidth") <= width
        texts = book.evaluate(FAINT, ".breaking-recorded")
        assert texts["count"] > 20 and texts["faint"] == []


def test_what_is_pressed_is_sent_and_keeps_the_keyboard(draw):
    page = draw()
    kill = page.get_by_role("button", name="Kill a worker predicted 7.5 s")
    kill.focus()
    page.keyboard.press("Enter")
    page.evaluate("b => source.set({ buttons: b })", [{**BUTTONS[0], "seconds": 8.3}, BUTTONS[1]])
    page.get_by_role("button", name="Kill a worker predicted 8.3 s").wait_for()
    assert page.evaluate("document.activeElement.dataset.name") == "worker"
    page.get_by_role("button", name="Cut a link").click(force=True)  # it cannot be pressed now
    page.get_by_role("button", name="Stop").click()
    assert sent(page) == [{"do": "press", "name": "worker"}, {"do": "stop"}]


@pytest.mark.parametrize("name", forecast.HARMS | forecast.MENDS)
def test_each_button_of_the_lab_is_sent_as_what_its_kernel_takes(name, draw):
    buttons = offered(*(harm for harm, mend in forecast.MENDED.items() if mend == name))
    assert fault(buttons, State.__annotations__["buttons"]) is None
    page = draw(buttons=buttons)
    assert page.locator(".breaking-harms button").count() == len(forecast.HARMS)
    page.get_by_role("button", name=f"{LABELS[name]} predicted").click()
    (message,) = sent(page)
    assert message == {"do": "press", "name": name}
    lab, lines = BreakItLab(3), []
    lab.process = SimpleNamespace(stdin=SimpleNamespace(write=lines.append, flush=lambda: None))
    lab.runs, lab.pressed = True, 0
    lab._take(message)
    assert lines == [f"{name}\n"] and name in DO


@pytest.mark.parametrize("name", State.__annotations__)
def test_a_change_of_each_field_is_drawn(name, draw):
    fields = SHOWN | ({"outcomes": []} if name == "now" else {})
    assert fault(fields, State) is None and fault(fields | {name: OTHERS[name]}, State) is None
    page = draw(**fields)
    html = "document.querySelector('.breaking').innerHTML"
    before = page.evaluate(html)
    page.evaluate("fields => source.set(fields)", {name: OTHERS[name]})
    page.wait_for_function(f"before => {html} !== before", arg=before)


def test_a_picture_is_told_and_has_its_harm_in_its_place(draw):
    page = draw()
    lanes = page.get_by_role("img", name="n2: trains for 3 s, is away for 9 s")
    lane, line = lanes.bounding_box(), lanes.locator("b").bounding_box()
    assert (line["x"] - lane["x"]) / lane["width"] == pytest.approx(3 / 12, abs=0.01)
    rows = page.locator(".lab-table tbody").inner_text().split("\n")
    assert rows == ["to meet again\t1.00 s\t2.35 s", "updates repeated\t13\t–"]
    assert "measured" in page.locator(".lab-table thead").inner_text()
    assert page.locator(".breaking-since").inner_text() == "seconds since the harm, measured"


def test_before_the_start_there_is_one_button(show_offline, draw):
    page = draw(
        outcomes=[],
        buttons=[],
        runs=True,
        now={"seconds": 20, "lanes": {"n1": [["trains", 0, 20]]}},
    )
    assert page.locator(".breaking-since").inner_text() == "seconds, now is 0, measured"
    page.evaluate("source.set({ runs: false, now: null })")
    page.get_by_role("button", name="Start").click()
    assert sent(page) == [{"do": "start"}]
    assert page.get_by_role("button").count() == 1
