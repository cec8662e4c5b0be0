"""What the lab draws of numbers that a test has made."""

import re

import lab_page
import pytest
from lab_page import FRAME, sent

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5588f")  # of the first runs, in a light page
COUNT = """([selector, colour]) => {
    const drawn = document.querySelector(selector + ' canvas');
    const canvas = new OffscreenCanvas(drawn.width, drawn.height);
    const copy = canvas.getContext('2d', { willReadFrequently: true });
    copy.drawImage(drawn, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const wanted = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
        if (wanted.every((value, i) => Math.abs(data[at + i] - value) < 3) && data[at + 3] > 250)
            count += 1;
    return count;
}"""


def painted(page, chart=".lab-curves"):
    """How many points of each colour there are in a chart."""
    page.evaluate(FRAME)
    return [page.evaluate(COUNT, [chart, colour]) for colour in COLOURS]


def words(page, chart="curves"):
    page.evaluate(FRAME)
    return page.locator(f".lab-{chart} .lab-plot").get_attribute("aria-label")


def test_every_run_is_painted_in_its_colour_until_it_is_hidden(draw):
    page = draw()
    page.get_by_label("samples/s").check()
    assert min(painted(page)) > 100
    page.locator(".lab-toggle").nth(1).click()
    before, hidden, *others = painted(page)
    assert hidden == 0 and before > 100 and min(others) > 100
    assert sent(page) == [{"do": "hide", "id": 2, "hidden": True}]
    page.locator(".lab-toggle").nth(1).click()
    assert min(painted(page)) > 100


MANY = [lab_page.run(id) for id in range(1, 10)]


def colours(page):
    """Of each run the colour, None for one that is not shown."""
    page.evaluate(FRAME)
    return page.evaluate(
        "lab.runs.runs.map(run => lab.runs.shown.includes(run) ? run.colour : null)"
    )


def test_no_two_runs_that_are_shown_have_one_colour(draw):
    page = draw(runs=MANY)
    assert colours(page)[:3] == [None] * 3, "the newest six"
    assert len(set(colours(page)[3:])) == 6
    kept = colours(page)[5]
    page.locator(".lab-toggle").nth(0).click()
    on = colours(page)
    assert on[0] is not None and on[3] is None and on[5] == kept, "one more, the oldest less"
    assert len({colour for colour in on if colour}) == 6
    page.locator(".lab-toggle").nth(8).click()
    page.locator(".lab-toggle").nth(8).click()
    assert len({colour for colour in colours(page) if colour}) == 6


def test_a_run_that_ends_is_one_run_at_every_moment(draw):
    """The kernel says that it has ended before it says that none goes on."""
    running = lab_page.run(5, 2, 128, status="running")
    page = draw(live=lab_page.LIVE | {"run": running})
    ended = [*lab_page.RUNS, running | {"status": "finished"}]
    page.evaluate("runs => source.set({ runs })", ended)
    page.evaluate(FRAME)
    assert page.locator(".lab-toggle").count() == 5
    assert page.locator(".lab-where .lab-lane").count() == 4, "one bar for each that was timed"
    page.evaluate("source.set({ live: null })")
    page.evaluate(FRAME)
    assert page.locator(".lab-where .lab-lane").count() == 4


def test_unsteady_and_diverged_runs_are_marked(draw):
    runs = [lab_page.run(1, unsteady=True), lab_page.run(2, diverged=True), lab_page.run(3)]
    marks = [run.inner_text() for run in draw(runs=runs).locator(".lab-runs li").all()]
    assert ["unsteady" in mark for mark in marks] == [True, False, False]
    assert ["diverged" in mark for mark in marks] == [False, True, False]


@pytest.mark.parametrize("status, end", [("stopped", 1), ("failed", 1), ("finished", 12)])
def test_epochs_that_were_not_reached_do_not_stretch_the_axis(draw, status, end):
    cut = lab_page.run(1, epochs=1, status=status)
    cut["settings"]["num_epochs"] = 12
    page = draw(runs=[cut], live=None)
    assert page.evaluate("lab.curves.picture().x.range") == [0, end]


def test_a_row_without_a_baseline_offers_its_run(draw):
    table = lab_page.TABLE | {
        "rows": [
            {**row, "alone": row["row"] == 3, "cells": row["cells"] | {"Speedup": "–"}}
            for row in lab_page.TABLE["rows"]
        ]
    }
    page = draw(table=table)
    page.get_by_role("button", name="Run one device, too").click()
    assert sent(page) == [{"do": "one_device", "row": 3}]


def test_a_renamed_run_has_its_name_everywhere(draw):
    page = draw()
    page.locator(".lab-rename").first.click()
    page.keyboard.type("the first")
    page.keyboard.press("Enter")
    assert sent(page) == [{"do": "rename", "id": 1, "name": "the first"}]
    assert "the first 0.739 at 4" in words(page)
    assert "the first" in page.locator(".lab-where").inner_text()
    assert page.evaluate("document.activeElement.className") == "lab-rename"
    page.locator(".lab-rename").first.click()
    page.keyboard.type("no")
    page.keyboard.press("Escape")
    assert len(sent(page)) == 1 and "the first" in words(page)


@pytest.mark.parametrize(
    "over, end, label",
    [
        ("epochs", "4", "epochs"),
        ("seconds", "8", "seconds"),
        ("samples seen", "24,000", "samples"),
    ],
)
def test_axes_are_the_reader_s_choice(draw, over, end, label):
    page = draw()
    page.get_by_label("train loss").check()
    page.get_by_role("radio", name=over).check()
    text = words(page)
    assert text.startswith(f"train loss over {label}")
    assert f"1 devices, batch 256 0.657 at {end};" in text


def test_the_axes_stay_while_a_run_grows(draw):
    page = draw(live=lab_page.LIVE)
    page.get_by_label("train loss").check()
    page.evaluate(FRAME)
    ranges = "[lab.curves.picture().x.range, lab.curves.picture().y.range]"
    before = page.evaluate(ranges)
    grown = lab_page.LIVE | {"run": lab_page.run(5, 2, 128, epochs=3, status="running")}
    page.evaluate("live => source.set({ live })", grown)
    assert "2 devices, batch 128 0.495 at 3" in words(page)
    assert page.evaluate(ranges) == before == [[0, 4], [0, 2.5]]


def test_accuracies_are_no_flat_line(draw):
    low, high = draw().evaluate("lab.curves.picture().y.range")
    assert (low, high) == (0.5, 0.8), "the runs are between 0.54 and 0.74"


def test_a_loss_that_explodes_leaves_the_others_their_room(draw):
    bad = lab_page.run(5)
    bad["curves"]["train loss"] = [[0, 0, 0, 2.3], [1, 1, 1, 1e30], [2, 2, 2, None]]
    page = draw(runs=[*lab_page.RUNS, bad])
    page.get_by_label("train loss").check()
    page.evaluate(FRAME)
    assert page.evaluate("lab.curves.picture().y.range") == [0, 5]


def test_the_values_under_the_pointer_are_said_beside_the_runs(draw):
    page = draw()
    box = page.locator(".lab-curves .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)  # two of four epochs
    values = page.locator(".lab-runs output").all_inner_texts()
    assert values[0] == "0.67 at 2" and values[2] == "0.598 at 2"
    page.mouse.move(box["x"] - 100, box["y"] + 40)
    assert set(page.locator(".lab-runs output").all_inner_texts()) == {""}
    plot = page.locator(".lab-curves .lab-plot")
    plot.press("ArrowRight")
    plot.press("ArrowRight")
    assert page.locator(".lab-runs output").first.inner_text() == "0.67 at 2"


def test_a_speedup_is_drawn_with_its_spread_and_none_of_simulated_devices(draw):
    text = words(draw(), "speedup")
    assert "2, batch 256: 1.80 measured (1.60 to 1.90)" in text and "4: 2.10 modelled" in text
    picture = draw().evaluate("lab.speedup.chart.picture")
    assert {line["name"]: line.get("dash", False) for line in picture["lines"]} == {
        "ideal": False,
        "forecast (modelled)": True,
        "row 1, batch 256": False,
        "row 2, batch 256": False,
    }


def test_over_two_devices_the_ideal_is_another_line(draw):
    speedups = [
        speedup | {"over_num_gpus": 2, "median": speedup["median"] / 1.8}
        for speedup in lab_page.SPEEDUPS
    ]
    page = draw(speedups=speedups, table=lab_page.TABLE | {"baseline": 2})
    assert page.locator(".lab-speedup figcaption").inner_text() == "Speedup over 2 devices"
    picture = page.evaluate("lab.speedup.chart.picture")
    ideal, forecast = (line["points"] for line in picture["lines"][:2])
    assert ideal[0] == [1, 0.5] and forecast[1] == [2, 1]


def test_where_the_time_went_is_one_bar_a_run_on_one_scale(draw):
    page = draw()
    bars = page.locator(".lab-where .lab-lane")
    assert bars.count() == 3, "the simulated run has not been timed"
    widths = [
        sum(part.bounding_box()["width"] for part in bar.locator("i").all()) for bar in bars.all()
    ]
    assert widths[1] / widths[0] == pytest.approx(27 / 41, abs=0.01)
    assert "Row 2 computes half as long" in page.locator(".lab-why").inner_text()


def test_files_charts_and_the_cell_can_be_taken_along(draw):
    page = draw()
    files = {}
    for name in ("training-lab.csv", "training-lab.png", "training-lab.svg"):
        with page.expect_download() as download:
            page.locator(f"[data-file='{name}']").click()
        files[name] = download.value.path().read_bytes()
    assert files["training-lab.csv"] == b"train\n"
    assert files["training-lab.png"].startswith(b"\x89PNG")
    svg = files["training-lab.svg"].decode()
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert len(re.findall("<circle", svg)) == 16, "four runs of four epochs"
    page.set_content(svg)
    assert page.locator("svg text", has_text="8 devices, batch 256").count() == 1


def test_the_drawing_has_room_for_long_names(draw):
    page = draw()
    ends = page.evaluate(
        """() => {
          const lines = [{ name: "4 devices, batch 1,024, lr 0.05, warm", tag: "12", points: [] }];
          const axis = { label: "", range: [0, 1] };
          const at = document.body.appendChild(document.createElement("div"));
          at.innerHTML = LabSvg.text({ x: axis, y: axis, lines }, () => "gray");
          return ["svg", "svg > text:last-of-type"].map(
            (found) => at.querySelector(found).getBoundingClientRect().right);
        }"""
    )
    assert ends[1] < ends[0]


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_page_is_too_narrow(draw, width):
    page = draw(live=lab_page.LIVE)
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(FRAME)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# Epochs whose loss is not finite -> where the drawn line begins anew, of eleven points.
DIVERGED = {
    "at the end": (range(6, 11), 1),
    "for a while": (range(3, 5), 2),
    "from the start": (range(0, 4), 1),
    "always": (range(0, 11), 0),
}


@pytest.mark.parametrize("when", DIVERGED)
def test_what_is_not_finite_is_a_gap_that_is_marked(draw, when):
    epochs, parts = DIVERGED[when]
    points = [[x, x, 100 * x, None if x in epochs else 2 - x / 10] for x in range(11)]
    first = lab_page.run(1, epochs=10, curves={"train loss": points})
    page = draw(runs=[first, lab_page.run(2, 2, epochs=10)], live=None)
    page.get_by_label("train loss").check()
    last = "diverged" if 10 in epochs else "1"
    assert f"batch 256 {last} at 10" in words(page)
    drawn = page.evaluate(
        """() => {
            const at = document.createElement("div");
            const { curves } = lab;
            at.innerHTML = LabSvg.text(curves.picture(), () => "gray");
            const lines = [...at.querySelectorAll("path[fill=none]")].map(p => p.getAttribute("d"));
            return [lines, [...at.querySelectorAll("text")].map(t => t.textContent)];
        }"""
    )
    lines, texts = drawn
    assert [text for text in texts if "diverged" in text] == ["1 diverged"]
    assert sum(line.count("M") == parts and line.count("L") < 11 for line in lines) == (parts > 0)


def test_a_speed_that_is_missing_is_no_divergence(draw):
    points = [[x, x, 100 * x, None if x == 2 else 3000] for x in range(1, 5)]
    page = draw(runs=[lab_page.run(1, curves={"samples/s": points}, forecast=None)], live=None)
    assert "diverged" not in words(page)
    assert "diverged" not in str(page.evaluate("JSON.stringify(lab.curves.picture())")).replace(
        '"diverged":false', ""
    )
