"""The lab in a built page: opened as a file with the network cut, wide and narrow."""

import json
import shutil

import pytest
from contrast import FAINT
from training_page import LINKS, write_theme

from d2lmgpu.lab import scripts
from d2lmgpu.lab.page import page as lab_page
from d2lmgpu.records.store import RecordError

MACHINE = {"cpu": "A CPU", "cores": 2, "memory_gib": 8, "gpus": [], "system": "Linux"}


def record(folder, name, *runs, **others):
    """Write a record of five rounds of ``(num_gpus, batch_size, lr, epoch's seconds, sharing)``."""
    about = {
        "schema": 2,
        "machine": MACHINE,
        "versions": {},
        "commit": "0123456789abcdef",
        "date": "now",
        "command": "make record",
        "profile": "quick profile.",
    } | others
    about["runs"] = [
        {
            "num_gpus": k,
            "batch_size": batch,
            "lr": lr,
            "num_samples": 600,
            "sharing": sharing,
            "accuracies": [0.5, 0.7],
            "seconds": [seconds, seconds],
            "kind": "measured",
            "round": number,
        }
        for number in range(5)
        for k, batch, lr, seconds, sharing in runs
    ]
    (folder / f"{name}.json").write_text(json.dumps(about))


@pytest.fixture
def records(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    record(
        folder,
        "cpu-2-cores-scratch-pytorch-quick",
        (1, 256, 0.2, 6.0, "one device"),
        (2, 256, 0.2, 4.0, "in parallel"),
        (2, 512, 0.4, 3.0, "in parallel"),
        (8, 256, 0.2, 9.0, "simulated"),
    )
    record(
        folder,
        "a-gpu-concise-mxnet-full",
        (1, 256, 0.1, 1.0, "one device"),
        machine=MACHINE | {"gpus": ["GPU 0: <Fast>"]},
    )
    return folder


@pytest.fixture
def shown(show_offline, records):
    """The page, opened, once it is drawn."""
    page = show_offline(lab_page(folder=records))
    page.locator(".lab-curves canvas").wait_for()
    return page


def run_names(page):
    """The runs of the record that is shown, once they are drawn."""
    page.locator(".lab-toggle").first.wait_for()
    return [text.strip() for text in page.locator(".lab-toggle").all_inner_texts()]


def cells(page, row):
    return page.locator(".lab-table tbody tr").nth(row).locator("td").all_inner_texts()


def test_all_runs_of_a_record_are_there_with_their_table(shown):
    assert [name.split(". ")[1] for name in run_names(shown)] == [
        "1 device, batch 256, lr 0.2",
        "2 devices, batch 256, lr 0.2",
        "2 devices, batch 512, lr 0.4",
        "8 devices, batch 256, lr 0.2 simulated",
    ]
    label = shown.locator(".lab-curves .lab-plot").get_attribute("aria-label")
    assert "test accuracy over epochs" in label and "1 device, batch 256, lr 0.2 0.7 at 2" in label
    on = [run.get_attribute("aria-pressed") for run in shown.locator(".lab-toggle").all()]
    assert on == ["true", "true", "false", "false"], "one device and two, of one batch"
    columns = shown.locator(".lab-table th").all_inner_texts()
    simulated = dict(zip(columns, cells(shown, 3), strict=True))
    assert (simulated["Timing"], simulated["Runs"], simulated["Samples/s"]) == (
        "simulated",
        "5",
        "66.7",
    )
    assert simulated["Speedup"] == simulated["Efficiency"] == ""
    assert dict(zip(columns, cells(shown, 1), strict=True))["Speedup"] == "1.50"


def test_a_speedup_is_drawn_of_what_was_measured_alone(shown):
    label = shown.locator(".lab-speedup .lab-plot").get_attribute("aria-label")
    assert "2, batch 256: 1.50 measured (1.50 to 1.50)" in label
    assert "8" not in label.partition(":")[2], "simulated devices have no speedup"


def test_pytorch_comes_first_however_many_runs_another_record_has(show_offline, records):
    runs = [(1, batch, 0.2, 6.0, "one device") for batch in (32, 64, 128, 256, 512)]
    record(records, "cpu-2-cores-concise-mxnet-quick", *runs)
    page = show_offline(lab_page(folder=records))
    assert page.get_by_label("LeNet in PyTorch").is_checked()
    first = page.locator(".lab-training label").first.inner_text()
    assert first.startswith("LeNet in PyTorch")


def test_another_machine_shows_its_record(shown):
    shown.get_by_label("GPU 0: <Fast>").check()
    assert len(run_names(shown)) == 1
    assert shown.get_by_label("ResNet-18 in MXNet, quick profile").is_checked()
    provenance = shown.locator(".lab-provenance").inner_text()
    assert "<Fast>" in provenance and "0123456789" in provenance and "make record" in provenance
    shown.get_by_label("2 CPU cores (A CPU)").check()
    assert len(run_names(shown)) == 4


def test_the_keyboard_is_enough(shown):
    shown.get_by_label("GPU 0: <Fast>").focus()
    shown.keyboard.press("Space")
    assert len(run_names(shown)) == 1
    shown.keyboard.press("ArrowLeft")
    assert len(run_names(shown)) == 4
    shown.get_by_label("samples/s").focus()
    shown.keyboard.press("Space")
    shown.locator(".lab-curves .lab-plot[aria-label^='samples/s']").wait_for()


def test_a_narrow_screen_needs_no_sideways_scrolling(shown):
    shown.set_viewport_size({"width": 360, "height": 800})
    shown.wait_for_function("document.querySelector('.lab-curves canvas').clientWidth < 360")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("theme, ink", [("light", "false"), ("dark", "true")])
def test_in_the_book_a_loader_gets_the_scripts_for_all_labs_of_a_page(
    quiet, records, tmp_path, monkeypatch, theme, ink
):
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    html = 2 * lab_page(folder=records)
    write_theme(tmp_path / "_static")
    shutil.copytree(scripts.FOLDER, tmp_path / "_static", dirs_exist_ok=True)
    (tmp_path / "page.html").write_text(
        f'<!doctype html><html data-theme="{theme}"><title>x</title><link rel="icon" href="data:,">'
        f'{LINKS}<link rel="stylesheet" href="_static/lab.css">'
        '<script src="_static/pages/loader.js"></script>'
        f'<article class="bd-article">{html}</article>'
    )
    quiet.context.set_offline(True)
    quiet.goto((tmp_path / "page.html").as_uri())
    quiet.locator(".lab-curves canvas").nth(1).wait_for()
    assert quiet.locator("script[src$='lab.js']").count() == 1
    assert quiet.locator(".lab-record .lab-root").first.get_attribute("data-dark") == ink
    quiet.set_viewport_size({"width": 1280, "height": 4000})  # only what is in it is found
    texts = quiet.evaluate(FAINT, ".lab-recorded")
    assert texts["count"] > 150 and texts["faint"] == []


def test_without_scripts_the_tables_are_there(browser, records, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(lab_page(folder=records))
    assert page.locator("table:visible").count() == 2
    assert "75%" in cells(page, 1)
    context.close()


def test_a_page_shows_its_own_records_or_says_that_there_are_none(records):
    assert "LeNet in PyTorch" in lab_page("scratch-pytorch", records)
    assert "Fast" not in lab_page("scratch-pytorch", records)
    assert "No runs have been recorded" in lab_page("scratch-mxnet", records)
    (records / "broken.json").write_text("{}")
    with pytest.raises(RecordError, match=r"broken\.json"):
        lab_page(folder=records)
