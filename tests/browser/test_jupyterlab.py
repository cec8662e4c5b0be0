"""The lab in a real JupyterLab: what a reader does with it, from Run All to an edited train."""

import json

import pytest
from all_labs import run_all_and_train
from lab_notebook import EDIT
from pages import Lab, edit_cell, interrupt, open_notebook, run_all, start_endless_cell
from servers import notebook7


@pytest.mark.needs("cores")
def test_run_stop_edit_and_run_again(server, page):
    open_notebook(page, server)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()

    assert all(lab.names()), "every control has a name for a screen reader"

    # Another number of devices with the keyboard alone, another batch, and the rate that goes with
    # it. The notebook, which has keys of its own for arrows and Enter, stays where it is.
    lab.scale.press("Space")
    page.locator(".lab-devices").get_by_label("1", exact=True).press("ArrowRight")
    lab.batch_slider.press("ArrowRight")
    page.wait_for_function("document.querySelector('.lab-lr input').value === '0.2'")
    assert lab.devices.input_value() == "2" and lab.batch_size.input_value() == "128"
    assert page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex") == 3
    lab.expect(".lab-hint", "The next run is")

    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    assert lab.cells(0)[:6] == ["1", "2", "128", "0.2", "own", "measured"]

    # The runs so far, as files.
    assert lab.download("training-lab.csv").startswith("train,version,num_gpus")
    assert json.loads(lab.download("training-lab-record.json"))["runs"][0]["batch_size"] == 128

    # A long run, with the keyboard alone: its curve grows before its end, and it can be stopped.
    lab.choose(lab.epochs, 500)
    lab.run.press("Enter")
    lab.wait_for_points("train loss", 4)  # the run before had three
    lab.stop.press("Enter")
    lab.expect(".lab-message", "Stopped.")
    lab.expect(".lab-table", "stopped")

    # A batch above the data: told in words, and nothing is stuck.
    lab.choose(lab.batch_size, 5000)
    lab.run.click()
    lab.expect(".lab-message", "batch_size=5000 is above the 1000 examples")
    lab.choose(lab.batch_size, 128)
    lab.wait_until_idle()

    # The edited cell is what runs next.
    edit_cell(page, 1, *EDIT)
    lab.choose(lab.epochs, 0)
    lab.run.click()
    lab.wait_for_points("edited loss", 1)
    lab.expect(".lab-message", "Finished.")
    assert lab.rows.count() == 4
    assert lab.cells(0)[1] == "version 1" and lab.cells(3)[1] == "version 2"


def test_a_run_takes_what_the_fields_say_also_while_a_cell_runs(server, page):
    open_notebook(page, server)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    start_endless_cell(page)
    lab.choose(lab.epochs, 2)
    lab.run.click()
    interrupt(page)
    lab.rows.nth(1).wait_for()
    assert [lab.cells(row)[4] for row in (0, 1)] == ["own", "2"]


def test_the_lab_in_notebook_7(tmp_path, page):
    with notebook7(tmp_path) as server:
        open_notebook(page, server, "notebooks")
        run_all(page)
        lab = Lab(page)
        lab.wait_until_ready()
        lab.run.click()
        lab.wait_for_points("train loss", 1)
        lab.expect(".lab-message", "Finished.")
        assert lab.cells(0)[:3] == ["1", "1", "64"]


def test_a_chapter_s_own_lab_trains(little_data, server, page):
    run_all_and_train(server, page, "scratch/mxnet")
