"""The lab as an app: Voilà serves it, without the notebook around it and without other hosts."""

import pytest
from pages import Lab
from servers import voila


@pytest.fixture
def app(tmp_path):
    with voila(tmp_path) as server:
        yield server


def test_run_and_stop_in_the_app(app, page):
    page.goto(app.url)
    lab = Lab(page)
    lab.wait_until_ready()
    assert page.locator(".jp-InputArea-editor:visible").count() == 0, "code is not shown"
    lab.choose(lab.devices, 2)
    lab.expect(".lab-hint", "The next run is")
    lab.run.click()
    lab.wait_for_points("train loss", 1)
    lab.expect(".lab-message", "Finished.")
    assert lab.cells(0)[:3] == ["1", "2", "64"]
    lab.choose(lab.epochs, 500)
    lab.run.click()
    lab.wait_for_points("train loss", 4)  # the run before had three
    lab.stop.click()
    lab.expect(".lab-message", "Stopped.")
