"""A lab whose kernel does not answer says so on every control, in a real JupyterLab."""

from functools import partial

import nbformat
import pytest
from pages import KERNEL, Lab, interrupt, open_notebook, run_all, start_endless_cell
from soaking import sample

SILENT = "The kernel has not answered"
SPEC = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
BREAKS = f"""\
from d2lmgpu.course.breaking.view import BreakItLab
breaking = BreakItLab(3)
breaking.provenance = ""
breaking.runs = True
breaking.buttons = {[{"name": "worker", "label": "Kill a worker", "seconds": 1.5}]}
breaking
"""
RESTART = f"{KERNEL}.restart()"
ENDS = {
    "shut down": f"{KERNEL}.shutdown()",
    "killed": f"{KERNEL}.requestExecute({{code: 'import os; os._exit(1)'}}).done.catch(() => 0)",
}


def rename(lab):
    lab.page.locator(".lab-rename").first.click()
    lab.choose(lab.page.locator(".lab-name"), "mine")


# What a reader does with each control.
CONTROLS = {
    "run": lambda lab: lab.run.click(),
    "reset": lambda lab: lab.reset.click(),
    "train": lambda lab: lab.pick("train", "in processes"),
    "devices": lambda lab: lab.pick("devices", "2"),
    "number": lambda lab: lab.choose(lab.devices, 3),
    "batch size": lambda lab: lab.choose(lab.batch_size, 32),
    "learning rate": lambda lab: lab.choose(lab.lr, 0.3),
    "scale": lambda lab: lab.scale.click(),
    "epochs": lambda lab: lab.choose(lab.epochs, 2),
    "hide": lambda lab: lab.page.locator(".lab-toggle").first.click(),
    "rename": rename,
    "baseline": lambda lab: lab.pick("baseline", "row 2"),
}


@pytest.fixture
def lab(server, page):
    """The lab, and a break-it lab below it."""
    notebook = nbformat.read(server.notebooks / "lab.ipynb", 4)
    notebook.cells.append(nbformat.v4.new_code_cell(BREAKS))
    nbformat.write(notebook, server.notebooks / "lab.ipynb")
    open_notebook(page, server)
    run_all(page)
    lab = Lab(page)
    lab.wait_until_ready()
    page.get_by_role("button", name="Kill a worker").wait_for()
    return lab


def silent_on_each(page, *uses):
    """Use each control, and wait for the words anew."""
    clear = "for (const p of document.querySelectorAll('.lab-silence')) p.textContent = ''"
    for use in uses:
        page.evaluate(clear)
        use()
        page.locator(".lab-silence", has_text=SILENT).wait_for()


def harms(page):
    """The buttons of the break-it lab: each is to be pressed."""
    return [page.get_by_role("button", name=name).click for name in ("Kill a worker", "Stop, and")]


@pytest.mark.needs("cores")
def test_a_lab_without_its_kernel_says_so_on_every_control(lab):
    for rows, batch_size in enumerate((64, 128), start=1):
        lab.choose(lab.batch_size, batch_size)
        lab.run.click()
        lab.rows.nth(rows - 1).wait_for()
        lab.wait_until_idle()
    # A kernel that is busy answers later, and the words go.
    start_endless_cell(lab.page)
    silent_on_each(lab.page, partial(lab.choose, lab.batch_size, 96))
    interrupt(lab.page)
    lab.page.locator(".lab-silence", has_text=SILENT).wait_for(state="hidden")
    lab.page.evaluate(f"{RESTART}.then(() => 0)")
    silent_on_each(lab.page, *(partial(use, lab) for use in CONTROLS.values()), *harms(lab.page))


@pytest.mark.parametrize("end", sample({"killed"}, ENDS))
def test_a_run_that_went_with_its_kernel_cannot_be_stopped_and_that_is_said(end, lab):
    lab.choose(lab.epochs, 500)
    lab.run.click()
    lab.expect(".lab-message", "Training.")
    lab.page.evaluate(f"{ENDS[end]}.then(() => 0)")
    if end == "killed":
        lab.page.locator(".jp-Dialog .jp-mod-accept").click()  # JupyterLab's own words
    silent_on_each(lab.page, lab.stop.click, *harms(lab.page))
