"""From a built page to a finished run: rocket, login, GPU choice, clone, JupyterLab, lab, Stop.

Nothing is edited: the pages, the hub and its repository are those of a checkout as it comes. Only
the GPUs are simulated, as README.md suggests for a machine without any.
"""

import re

import pytest
from exercise_notebook import NOTEBOOK, answer_first
from launching import CHAPTER, EXERCISES, FOLDER, REFERENCE, press_the_rocket
from learner import ADA, choose, lab_hub, log_in
from pages import Lab, run_all, wait_for_notebook


@pytest.fixture(scope="module")
def hub(course, tmp_path_factory):
    """The hub of that checkout, at the address to which its pages' rockets lead."""
    (address,) = re.findall(r'jupyterhub_url: "(.*?)"', (course / "_config.yml").read_text())
    settings = {"root": course, "unedited": True, "HUB_SIMULATED_GPUS": "4"}
    with lab_hub(tmp_path_factory.mktemp("hub"), **settings) as running:
        assert f"The hub will be at {address}/\n" in running.log()
        yield running


def test_from_the_rocket_to_a_stopped_run(pages, hub, context):
    page = press_the_rocket(context, pages, CHAPTER)
    log_in(page, hub)
    assert "4 of 4 simulated GPUs" in choose(page, gpus=2)
    wait_for_notebook(page, f"{FOLDER}/{CHAPTER}")
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    assert hub.process_of(ADA).environ()["D2LMGPU_DEVICES"] == "cpu:2"

    lab.devices.focus()
    lab.devices.press("ArrowUp")
    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    assert lab.cells(0)[1] == "2"
    lab.choose(lab.epochs, 500)
    lab.run.click()
    lab.wait_for_points("train loss", 4)  # the run before had three
    lab.stop.click()
    lab.expect(".lab-message", "Stopped.")

    # The next chapter, which is a Markdown file: no login and no choice any more.
    page = press_the_rocket(context, pages, REFERENCE)
    wait_for_notebook(page, f"{FOLDER}/{REFERENCE}")

    # The exercises: from the link on their page to the first that is correct.
    page = context.new_page()
    page.goto(pages + EXERCISES.replace(".md", ".html"))
    page.locator("a.launch").first.click()
    wait_for_notebook(page, f"{FOLDER}/{NOTEBOOK}")
    answer_first(page)
    hub.stop_server(ADA)
    assert hub.leases() == {}
