"""The lab in a real JupyterLab beside three busy loops, and at rest: twenty runs each, of LeNet on
one device and on two. Beside the loops each is called unsteady and none is explained; at rest at
most two are called so.

    pytest tests/browser/steadiness.py

At rest means that nothing else runs on this machine: `-k loops` is the half that needs no rest.
"""

import subprocess
import sys
from contextlib import ExitStack

import nbformat
from pages import Lab, open_notebook, run_all
from servers import ROOT

RUNS, RUN = 20, 120  # and seconds: a hang is a failure
CELL = """
from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import TrainingLab

TrainingLab({{"LeNet": ChapterTrain({path!r})}}, batch_size=256, lr=0.2, num_epochs=1)
"""


def run_in_turns(server, page):
    """(whether it is called unsteady, what explains it) of each run, on one device and two."""
    cell = CELL.format(path=str(ROOT / "chapters" / "scratch" / "pytorch.ipynb"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, server.notebooks / "steady.ipynb")
    open_notebook(page, server, name="steady.ipynb")
    run_all(page)
    lab, verdicts = Lab(page), []
    lab.wait_until_ready()
    for number in range(RUNS):
        lab.pick("devices", str(1 + number % 2))
        lab.run.click()
        ended = page.locator(".lab-runs li").nth(number)
        ended.wait_for()
        page.locator(".lab-runs li", has_text="running").wait_for(state="hidden", timeout=RUN * 1e3)
        lab.wait_until_idle()
        assert "failed" not in ended.inner_text()
        verdicts.append(("unsteady" in ended.inner_text(), page.locator(".lab-why").inner_text()))
        print(number + 1, *verdicts[-1])
    return verdicts


def test_beside_three_busy_loops_each_is_called_unsteady_and_none_is_explained(server, page):
    with ExitStack() as loops:
        for _ in range(3):
            # each in a session of its own, as other people's: Linux shares the cores by sessions
            # first, and three loops in one leave the lab a core, on which one device is not slowed
            command = [sys.executable, "-c", "while True: pass"]
            loop = subprocess.Popen(command, start_new_session=True)
            loops.callback(loop.kill)
        verdicts = run_in_turns(server, page)
    assert [unsteady for unsteady, _ in verdicts] == [True] * RUNS
    assert not any(" ms" in why for _, why in verdicts)


def test_at_rest_at_most_two_are_called_unsteady(server, page):
    verdicts = run_in_turns(server, page)
    assert sum(unsteady for unsteady, _ in verdicts) <= 2
