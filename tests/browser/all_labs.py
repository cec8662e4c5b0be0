"""The lab of every chapter in a real JupyterLab: ``pytest tests/browser/all_labs.py``.

Run All takes up to a minute for some, so that ``make test`` has one chapter of them alone.
"""

import shutil

import pytest
from chapter_labs import CHAPTERS, LABS
from pages import Lab, open_notebook, run_all

CHAPTER, RUN = 600, 120  # seconds: a hang is a failure
ERROR = "[data-mime-type='application/vnd.jupyter.error']"  # Run All goes no further


def run_all_and_train(server, page, chapter):
    """A reader's way through a chapter: open it, Run All, and Run in its lab."""
    for folder in (CHAPTERS, CHAPTERS.parent / "records"):  # which some chapters read
        shutil.copytree(folder, server.notebooks / folder.name)
    open_notebook(page, server, name=f"chapters/{chapter}.ipynb")
    run_all(page)
    lab = Lab(page)
    lab.expect(f".lab-note, {ERROR}", "", CHAPTER)
    assert page.locator(ERROR).count() == 0
    lab.wait_until_ready()
    lab.run.click()
    lab.expect(".lab-message", "Finished.", RUN)
    assert lab.rows.count() == 1 and all(lab.cells(0)[-3:])


@pytest.mark.parametrize("chapter", LABS, ids=[lab.replace("/", "-") for lab in LABS])
def test_run_all_and_train(little_data, server, page, chapter):
    run_all_and_train(server, page, chapter)
