"""Who only opens a notebook changes nothing, on the disk or for another on the same kernel."""

import json
import shutil

import pytest
from pages import Lab, open_notebook, run_all
from servers import ROOT

DIRTY = "window.jupyterapp.shell.currentWidget.context.model.dirty"
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id"
# What autosave does: it saves what was changed, and nothing else.
SAVE = "window.jupyterapp.commands.execute('docmanager:save')"
MADE = ["chapters/scratch/pytorch.ipynb", "exercises/scaling.ipynb"]


@pytest.mark.parametrize("name", MADE)
def test_it_is_not_changed_by_being_opened(server, page, name):
    copy = server.notebooks / name
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / name, copy)
    open_notebook(page, server, name=name)
    assert page.evaluate(DIRTY) is False


def outputs(path):
    cells = json.loads(path.read_text())["cells"]
    return [list(output.get("data", "")) for cell in cells for output in cell.get("outputs", [])]


def test_a_second_client_on_one_kernel_costs_the_first_nothing(server, page):
    """Found once: what was open twice was saved by the one that had no outputs."""
    other = page.context.new_page()
    open_notebook(page, server)
    open_notebook(other, server)
    assert page.evaluate(KERNEL) == other.evaluate(KERNEL)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    lab.run.click()
    lab.expect(".lab-message", "Finished.")
    page.evaluate(SAVE)
    saved = outputs(server.notebooks / "lab.ipynb")
    assert any("application/vnd.jupyter.widget-view+json" in data for data in saved)
    assert other.evaluate(DIRTY) is False, "its autosave would write a notebook without outputs"
    other.close()
    open_notebook(page, server)
    Lab(page).wait_until_ready()
    assert outputs(server.notebooks / "lab.ipynb") == saved
