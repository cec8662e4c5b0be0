"""Fifty random interruptions in a real JupyterLab: ``pytest tests/browser/interruptions.py``.

Each leaves no process but the spare, no listening port, no temporary file, and a lab that runs.
"""

import random
import time

import pytest
from pages import Lab, open_notebook, run_all, wait_for_kernel
from processes import commands, left
from servers import SECONDS, jupyterlab

LONG, SHORT = 1000, 1
RESTART = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
SAVE = "window.jupyterapp.commands.execute('docmanager:save')"


def stop(desk):
    desk.lab.stop.click()
    desk.lab.expect(".lab-message", "Stopped.")


def kill_the_worker(desk):
    (worker,) = [p for p in desk.processes("d2lmgpu.lab.worker") if p.cmdline()[1] == "-u"]
    worker.kill()
    desk.lab.expect(".lab-message", "SIGKILL")


def kill_a_rank(desk):
    random.choice(desk.ranks()).kill()
    desk.lab.expect(".lab-message", "was killed by SIGKILL")


def restart_the_kernel(desk):
    running = desk.processes("d2lmgpu")
    desk.page.evaluate(RESTART)
    wait_for_kernel(desk.page)
    assert left(running, SECONDS) == []
    desk.start_lab()


def close_the_tab(desk):
    desk.page.evaluate(SAVE)
    desk.page.close()
    desk.open()
    desk.lab.wait_until_ready()
    stop(desk)


ACTIONS = [stop, kill_the_worker, kill_a_rank, restart_the_kernel, close_the_tab]


class Desk:
    """A reader at a JupyterLab: the page, the lab on it, and the processes beneath."""

    def __init__(self, context, server):
        self.context, self.server = context, server
        self.open()
        self.start_lab()

    def open(self):
        self.page = self.context.new_page()
        self.lab = Lab(self.page)
        open_notebook(self.page, self.server)

    def start_lab(self):
        run_all(self.page)
        self.lab.wait_until_ready()

    def processes(self, *words):
        """Processes under the kernel with all these words in their command line."""
        every = commands(self.server.descendants())
        return [process for process, text in every.items() if all(word in text for word in words)]

    def ranks(self):
        """The workers of a run in processes: fork server → guard → supervisor → workers."""
        line = {p.pid: p for p in self.processes("d2lmgpu.process.forkserver")}
        above = {p: [a for a in p.parents() if a.pid in line] for p in line.values()}
        return [p for p, forked_by in above.items() if len(forked_by) == 3]

    def run(self, epochs, train="plain"):
        self.lab.pick("train", train)
        self.lab.choose(self.lab.devices, 2)
        self.lab.choose(self.lab.epochs, epochs)
        self.lab.run.click()

    def nothing_left(self):
        """Wait for the spare; then it is all there is."""
        deadline = time.monotonic() + SECONDS
        while len(self.processes("d2lmgpu.lab.worker")) != 3:  # guard and supervisor name it, too
            assert time.monotonic() < deadline, self.processes("d2lmgpu")
            time.sleep(0.05)
        left = self.processes("d2lmgpu")
        assert len(left) == 3, left
        assert [c for p in left for c in p.net_connections() if c.status == "LISTEN"] == []
        assert len(list(self.server.temporary.glob("d2lmgpu-*"))) == 1


@pytest.mark.parametrize("seed", range(10))
def test_five_interruptions_in_random_order(tmp_path, browser, seed):
    chance = random.Random(seed)
    with jupyterlab(tmp_path) as server:
        context = browser.new_context(viewport={"width": 1200, "height": 1500})
        context.set_default_timeout(SECONDS * 1000)
        desk = Desk(context, server)
        for action in chance.sample(ACTIONS, len(ACTIONS)):
            print(action.__name__)
            desk.run(LONG, "in processes" if action is kill_a_rank else "plain")
            desk.lab.wait_for_points("train loss", chance.choice([4, 5, 12]))
            action(desk)
            desk.nothing_left()
            desk.run(SHORT)
            desk.lab.expect(".lab-message", "Finished.")
            desk.nothing_left()
        context.close()
