"""A page that trains: real workers, from a server and from a file, with the network cut."""

import csv
import io
from pathlib import Path

import pytest
from contrast import CONTRAST
from static_site import served
from training_page import press, rows, wait_for, wait_until_none_works, write_page, write_site

SMALL = {"network": "mlp", "batch_size": 1024, "epochs": 1}  # an instant
LONG = {"network": "mlp", "batch_size": 64, "epochs": 1000}  # until it is stopped


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


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_two_devices_compute_what_one_computes(quiet, panel_site, panel_images, scheme):
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)
    with served(panel_site) as address:
        quiet.goto(f"{address if scheme == 'http' else panel_site.as_uri()}/page.html")
        press(quiet, "One device, then two")
        wait_for(quiet, "all 6 losses are identical")
        first, second = rows(quiet)
        assert first[:4] == ["1", "MLP 784-128-10", "1", "–"] and first[-3:-1] == [
            "reference",
            second[-2],
        ]
        assert second[:4] == ["2", "MLP 784-128-10", "2", "tree"] and second[-1] == "identical"
        for chart in quiet.locator(".training-loss, .training-accuracy").all():
            assert chart.evaluate(PAINTED) == [True, True], "a curve of each run"
        wait_until_none_works(quiet)


def test_images_code_and_charts_are_loaded_by_the_first_run(page, show_panel):
    loaded = set()
    page.on("request", lambda request: loaded.add(Path(request.url).name))
    first_used = {"images.js", "code.js", "uPlot.iife.min.js", "uPlot.min.css"}
    show_panel(**SMALL)
    assert "panel.js" in loaded and not first_used & loaded
    press(page, "Run")
    wait_for(page, "Finished")
    assert first_used < loaded


@pytest.mark.needs("cores")
def test_stop_ends_the_run_and_its_workers(show_panel):
    page = show_panel(**LONG)
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


def test_a_page_that_is_left_leaves_no_worker_and_its_runs(show_panel, panel_site):
    page = show_panel(**SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    write_page(panel_site, "next", **LONG)
    page.goto((panel_site / "next.html").as_uri())
    assert [row[-1] for row in rows(page)] == ["–", "identical"]
    press(page, "Run")
    page.locator("progress:not([value='0'])").wait_for()
    page.goto((panel_site / "page.html").as_uri())
    wait_until_none_works(page)
    press(page, "Clear")
    page.reload()
    assert rows(page) == []


def test_the_keyboard_is_enough(show_panel):
    page = show_panel(batch_size=1024, epochs=1)
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
LEAST = (
    f"(root) => {{ {CONTRAST}"
    + """
    const ground = e => {
        const color = getComputedStyle(e).backgroundColor;
        return /, 0\\)$/.test(color) ? ground(e.parentElement) : color;
    };
    const text = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const texts = [...root.querySelectorAll("*")].filter(
        e => text(e) && e.checkVisibility() && !e.disabled);
    const swatch = number => {
        const i = root.appendChild(document.createElement("i"));
        i.className = `training-colour-${number}`;
        return contrast(getComputedStyle(i).backgroundColor, ground(root));
    };
    return [
        Math.min(...texts.map(e => contrast(getComputedStyle(e).color, ground(e)))),
        Math.min(...[0, 1, 2, 3, 4, 5].map(swatch)),
    ];
}"""
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read_and_fits_a_telephone(show_panel, theme):
    page = show_panel(theme=theme, open="", **SMALL)
    page.set_viewport_size({"width": 360, "height": 800})
    press(page, "One device, then two")
    wait_for(page, "identical")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    texts, colours = page.locator(".training").evaluate(LEAST)
    assert texts >= 4.5 and colours >= 3


def test_a_ring_says_how_far_it_is_from_one_device(show_panel):
    page = show_panel(devices=4, algorithm="ring", **SMALL)
    press(page, "One device, then four")
    wait_for(page, "the losses differ by up to")
    assert 0 < float(rows(page)[-1][-1]) < 1e-3


def test_runs_that_diverge_are_compared_too_and_kept(show_panel):
    page = show_panel(lr=1e30, **SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    label = page.locator(".training-loss [role=img]").get_attribute("aria-label")
    assert "NaN" in label
    page.reload()
    assert rows(page)[1][-1] == "identical"


def test_the_runs_as_a_file(show_panel):
    page = show_panel(**SMALL)
    press(page, "One device, then two")
    wait_for(page, "identical")
    with page.expect_download() as download:
        press(page, "Download as CSV")
    first, second = csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))
    assert (first["devices"], first["speedup"], first["end"]) == ("1", "", "finished")
    assert (second["devices"], second["largest_difference"], second["lr"]) == (
        "2",
        "0",
        first["lr"],
    )
    assert float(second["samples_per_second"]) > 0 and int(second["bytes"]) > 0
