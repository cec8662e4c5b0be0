"""A page that trains: real workers, from a server and from a file, with the network cut."""

import csv
import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import SECONDS
from training_page import ASSETS, FAKE, serve, write_page, write_site

SMALL = {"network": "mlp", "batch_size": 1024, "epochs": 1}  # an instant
LONG = {"network": "mlp", "batch_size": 64, "epochs": 1000}  # until it is stopped


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """The images as the book gets them."""
    file = tmp_path_factory.mktemp("images") / "images.js"
    subprocess.run([sys.executable, ASSETS.parent / "tools" / "page_images.py", file], check=True)
    return file


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def quiet(page):
    """Any word on the console fails the test."""
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []


@pytest.fixture
def show(quiet, folder, images):
    """Opens a page with a panel from a file with the network cut."""

    def show(engine=None, **settings):
        if not (folder / "_static").exists():
            write_site(folder, images, engine)
        write_page(folder, **settings)
        quiet.context.set_offline(True)
        quiet.goto((folder / "page.html").as_uri())
        quiet.locator(".training[data-ready]").wait_for()
        return quiet

    return show


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def wait_for(page, words):
    page.locator(".training-said", has_text=words).wait_for()


def rows(page):
    found = page.locator(".training tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in found]


def wait_until_none_works(page):
    """Until no worker is left; Playwright hears of an end while it talks with the page."""
    deadline = time.monotonic() + SECONDS
    while page.workers:
        assert time.monotonic() < deadline, f"{len(page.workers)} workers are left"
        page.evaluate("0")


PAINTED = """(chart) => {
    const canvas = chart.querySelector("canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] === 255) colours.add(data.slice(i, i + 3).join());
    const probe = document.body.appendChild(document.createElement("i"));
    const number = name => {
        probe.className = name;
        return getComputedStyle(probe).backgroundColor.match(/\\d+/g).join();
    };
    chart.closest(".training").append(probe);
    return [1, 2].map(run => colours.has(number(`training-colour-${run}`)));
}"""


@pytest.mark.parametrize("way", ["http", "file"])
def test_two_devices_compute_what_one_computes(quiet, folder, images, way):
    write_site(folder, images)
    write_page(folder, **SMALL)
    with serve(folder) as address:
        quiet.goto(f"{address if way == 'http' else folder.as_uri()}/page.html")
        press(quiet, "One device, then two")
        wait_for(quiet, "all 6 losses are identical")
        one, two = rows(quiet)
        assert one[:4] == ["1", "MLP 784-128-10", "1", "–"] and one[-3:-1] == ["reference", two[-2]]
        assert two[:4] == ["2", "MLP 784-128-10", "2", "tree"] and two[-1] == "identical"
        for chart in quiet.locator(".training-loss, .training-accuracy").all():
            assert chart.evaluate(PAINTED) == [True, True], "a curve of each run"
        wait_until_none_works(quiet)


def test_images_code_and_charts_are_loaded_by_the_first_run(page, show):
    loaded = set()
    page.on("request", lambda request: loaded.add(Path(request.url).name))
    first_used = {"images.js", "code.js", "uPlot.iife.min.js", "uPlot.min.css"}
    show(**SMALL)
    assert "panel.js" in loaded and not first_used & loaded
    press(page, "Run")
    wait_for(page, "Finished")
    assert first_used < loaded


def test_stop_ends_the_run_and_its_workers(show):
    page = show(**LONG)
    press(page, "Run")
    page.locator("dt:text-is('loss') + dd", has_text=".").wait_for()
    assert len(page.workers) == 2
    press(page, "Stop")
    wait_for(page, "Stopped after")
    wait_until_none_works(page)
    ((*_, why, _, difference),) = rows(page)
    assert (why, difference) == ("no run on one device", "–")
    press(page, "Run")  # and it runs again
    page.locator("progress:not([value='0'])").wait_for()
    press(page, "Stop")


def test_a_page_that_is_left_leaves_no_worker_and_its_runs(show, folder):
    page = show(**SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    write_page(folder, "next", **LONG)
    page.goto((folder / "next.html").as_uri())
    assert [row[-1] for row in rows(page)] == ["–", "identical"]
    press(page, "Run")
    page.locator("progress:not([value='0'])").wait_for()
    page.goto((folder / "page.html").as_uri())
    wait_until_none_works(page)
    press(page, "Clear")
    page.reload()
    assert rows(page) == []


def test_the_keyboard_is_enough(show):
    page = show(batch_size=1024, epochs=1)
    keys = page.keyboard

    def focused():
        return page.evaluate("document.activeElement.textContent || document.activeElement.name")

    for _ in range(3):  # the two buttons, then the settings: Stop is not there yet
        keys.press("Tab")
    assert focused().startswith("Settings: LeNet, two devices")
    keys.press("Enter")
    keys.press("Tab")
    keys.press("ArrowRight")
    assert page.get_by_label("MLP").is_checked()
    keys.press("Tab")
    keys.press("ArrowLeft")
    assert page.get_by_role("radio", name="1", exact=True).is_checked()
    for _ in range(4):
        keys.press("Tab")
    assert focused() == "epochs"
    keys.press("Enter")
    wait_for(page, "Finished: MLP 784-128-10, one device")
    assert focused() == "epochs", "the place of the keyboard is kept"
    keys.press("ArrowUp")
    keys.press("Shift+Tab")
    assert focused() == "lr"
    keys.type("x")
    page.get_by_role("button", name="Run", exact=True).focus()
    keys.press("Space")
    page.locator(".training-error:visible").wait_for()


# The least contrast (WCAG 2.1, 1.4.3 and 1.4.11) of texts, and of the runs' colours, in the panel.
CONTRAST = """(root) => {
    const light = color => {
        const part = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = color.match(/[\\d.]+/g).map(v => part(+v));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const ground = e => {
        const color = getComputedStyle(e).backgroundColor;
        return /, 0\\)$/.test(color) ? ground(e.parentElement) : color;
    };
    const ratio = (one, other) => {
        const pair = [light(one), light(other)];
        return Math.max(...pair) / Math.min(...pair);
    };
    const text = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const texts = [...root.querySelectorAll("*")].filter(
        e => text(e) && e.checkVisibility() && !e.disabled);
    const swatch = number => {
        const i = root.appendChild(document.createElement("i"));
        i.className = `training-colour-${number}`;
        return ratio(getComputedStyle(i).backgroundColor, ground(root));
    };
    return [
        Math.min(...texts.map(e => ratio(getComputedStyle(e).color, ground(e)))),
        Math.min(...[0, 1, 2, 3, 4, 5].map(swatch)),
    ];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_and_fits_a_telephone(show, theme):
    page = show(theme=theme, open="", **SMALL)
    page.set_viewport_size({"width": 360, "height": 800})
    press(page, "One device, then two")
    wait_for(page, "identical")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    texts, colours = page.locator(".training").evaluate(CONTRAST)
    assert texts >= 4.5 and colours >= 3


def test_a_ring_says_how_far_it_is_from_one_device(show):
    page = show(devices=4, algorithm="ring", **SMALL)
    press(page, "One device, then four")
    wait_for(page, "the losses differ by up to")
    assert 0 < float(rows(page)[-1][-1]) < 1e-3


def test_runs_that_diverge_are_compared_too_and_kept(show):
    page = show(lr=1e30, **SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    label = page.locator(".training-loss [role=img]").get_attribute("aria-label")
    assert "NaN" in label
    page.reload()
    assert rows(page)[1][-1] == "identical"


def test_the_runs_as_a_file(show):
    page = show(**SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    with page.expect_download() as download:
        press(page, "Download as CSV")
    one, two = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert (one["devices"], one["speedup"], one["end"]) == ("1", "", "finished")
    assert (two["devices"], two["largest_difference"], two["lr"]) == ("2", "0", one["lr"])
    assert float(two["samples_per_second"]) > 0 and int(two["bytes"]) > 0


def told(show, story, button="One device, then two", words="so no speedup is told", **settings):
    """The page after runs of which ``story``, a function of the settings, tells what is unlike."""
    page = show(f"const story = {story};{FAKE}", **settings)
    press(page, button)
    if words:
        wait_for(page, words)
    return page


def test_a_speedup_is_told(show):
    page = told(show, "s => ({ seconds: 2 / s.devices })", words="trained 2.00 times as fast")
    assert rows(page)[1][-3:] == ["2.00 times", "0.500", "identical"]


def test_a_slowdown_is_told(show):
    told(show, "s => ({ seconds: s.devices })", words="took 2.00 times as long")


@pytest.mark.parametrize("devices", [1, 2])
def test_a_hidden_tab_tells_no_speedup(show, devices):
    page = told(show, f"s => ({{ hidden: s.devices === {devices} }})")
    assert "tab was hidden" in page.locator(".training-said").text_content()
    assert rows(page)[1][-3] == "tab was hidden"


def test_devices_that_share_cores_tell_no_speedup(show):
    page = told(show, "s => ({})", "One device, then four", devices=4)
    assert "reports 2 cores" in page.locator(".training-said").text_content()
    assert rows(page)[1][-3] == "shared cores"


def test_errors_are_shown_in_words_and_the_next_run_is_free(show):
    story = """s => {
        if (s.lr > 1) throw Error("a rate of 9: at most 1");
        return s.devices === 2 ? { how: "failed", message: "no memory for a worker" } : {};
    }"""
    page = told(show, story, "Run", words=None, open="")
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


def test_what_cannot_be_loaded_is_said(page, folder, images):
    write_site(folder, images, f"const story = s => ({{}});{FAKE}")
    (folder / "_static" / "vendor").unlink()
    write_page(folder)
    page.goto((folder / "page.html").as_uri())
    press(page, "Run")
    page.get_by_role("alert").get_by_text("could not be loaded").wait_for()
