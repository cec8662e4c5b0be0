"""The lab in a built page: opened as a file with the network cut, wide and narrow."""

import json
import re

import pytest

from d2lmgpu.lab.page import page as lab_page
from d2lmgpu.records.store import RecordError

MACHINE = {"cpu": "A CPU", "cores": 2, "memory_gib": 8, "gpus": [], "system": "Linux"}


def record(folder, name, *runs, **others):
    """Write a record of five rounds of ``(num_gpus, batch_size, lr, epoch's seconds, sharing)``."""
    about = {
        "schema": 2, "machine": MACHINE, "versions": {}, "commit": "0123456789abcdef",
        "date": "now", "command": "make record", "profile": "quick profile.",
    } | others  # fmt: skip
    about["runs"] = [
        {
            "num_gpus": k, "batch_size": batch, "lr": lr, "num_samples": 600, "sharing": sharing,
            "accuracies": [0.5, 0.7], "seconds": [seconds, seconds], "kind": "measured",
            "round": number,
        }
        for number in range(5)
        for k, batch, lr, seconds, sharing in runs
    ]  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(about))


@pytest.fixture
def records(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    record(
        folder, "cpu-2-cores-scratch-pytorch-quick",
        (1, 256, 0.2, 6.0, "one device"), (2, 256, 0.2, 4.0, "in parallel"),
        (2, 512, 0.4, 3.0, "in parallel"), (8, 256, 0.2, 9.0, "simulated"),
    )  # fmt: skip
    record(
        folder, "a-gpu-concise-mxnet-full", (1, 256, 0.1, 1.0, "one device"),
        machine=MACHINE | {"gpus": ["GPU 0: <Fast>"]},
    )  # fmt: skip
    return folder


@pytest.fixture
def shown(show_offline, records):
    """The page, opened, with its controls."""
    return show_offline(lab_page(folder=records))


def choose(page, **values):
    for label, value in values.items():
        page.get_by_label(label.replace("_", " ")).select_option(value)


def said(page):
    return page.locator("figcaption:visible").text_content()


def test_the_controls_show_the_run_that_was_asked_for(shown):
    assert said(shown).startswith("1 device, batch 256, lr 0.2: 100 samples/s (measured), test acc")
    choose(shown, Devices="2")
    assert "150 samples/s (measured), 1.50 times the baseline" in said(shown)
    choose(shown, Batch_size="512")
    assert said(shown).startswith("2 devices, batch 512, lr 0.4: 200 samples/s")
    assert shown.get_by_label("Learning rate").input_value() == "0.4"
    choose(shown, Batch_size="256", Devices="8")
    assert "simulated: the time says nothing about speedup" in said(shown)
    assert "times the baseline" not in said(shown)
    choose(shown, Learning_rate="0.4")
    assert shown.locator("figure:visible").count() == 0
    assert "was not recorded" in shown.locator(".lab-none:visible").text_content()
    # It has no run on 8 devices: its first one is shown.
    choose(shown, Recorded_on="GPU 0: <Fast>: ResNet-18 in MXNet, quick profile")
    assert "600 samples/s" in said(shown)
    provenance = shown.locator(".lab-record:visible").text_content()
    assert "<Fast>" in provenance and "0123456789" in provenance and "make record" in provenance


def test_what_was_not_recorded_leads_to_what_was(shown):
    choose(shown, Devices="2")
    choose(shown, Batch_size="512")
    choose(shown, Devices="8")
    assert said(shown).startswith("8 devices, batch 256, lr 0.2:")
    assert shown.get_by_label("Batch size").input_value() == "256"


def test_the_keyboard_is_enough(shown):
    devices = shown.get_by_label("Devices")
    devices.focus()
    shown.keyboard.press("ArrowDown")
    assert said(shown).startswith("2 devices")


def test_numbers_on_hover_and_in_the_table(shown):
    titles = shown.locator("figure:visible circle title").all_text_contents()
    assert {"test accuracy 0.5 at epoch 1", "test accuracy 0.7 at epoch 2"} <= set(titles)
    table = shown.locator(".lab-record:visible table")
    assert table.locator("tbody tr").count() == 4
    simulated = table.locator("tr", has_text="simulated").locator("td").all_text_contents()
    assert simulated[5:10] == ["simulated", "5", "66.7", "", ""], "no speedup and no efficiency"


def test_a_narrow_screen_needs_no_sideways_scrolling(shown):
    shown.set_viewport_size({"width": 360, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    for picture in shown.locator("figure:visible svg").all():
        box = picture.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360


def test_without_scripts_the_first_run_is_there(records):
    html = lab_page(folder=records)
    (shown,) = re.findall(r"<figcaption>(.*?)</figcaption>", html.split('role="status"')[1])
    assert shown.startswith("1 device, batch 256, lr 0.2:")


def test_a_page_shows_its_own_records_or_says_that_there_are_none(records):
    assert "figcaption" in lab_page("scratch-pytorch", records)
    assert "Fast" not in lab_page("scratch-pytorch", records)
    assert "No runs have been recorded" in lab_page("scratch-mxnet", records)
    (records / "broken.json").write_text("{}")
    with pytest.raises(RecordError, match=r"broken\.json"):
        lab_page(folder=records)
