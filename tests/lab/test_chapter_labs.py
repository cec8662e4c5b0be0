"""The lab of every chapter in a real kernel: its Run is pressed, and it trains."""

import json
import os

import psutil
import pytest
from chapter_labs import CHAPTERS, LABS, THE_LAB, cells
from jupyter_kernel import KernelManager
from processes import left
from recording import SECONDS
from soaking import sample

from d2lmgpu.course.chapters import TAGS

ROWS = """
import json as _json
from d2lmgpu.lab.version import version as _version
_rows = [[row.trial.status, row.trial.num_samples, row.accuracy.median,
          row.samples_per_second.median]
         for row in lab.model.table()]
_train = lab.model.function
print(_json.dumps([_rows, _version(_train) == _version(_train) == lab.model.runs[0].version]))
"""


class Kernel:
    """A kernel, and what a front end knows of it: the widgets by their ids."""

    def __init__(self, folder):
        self.manager = KernelManager(kernel_name="python3")
        environment = os.environ | {"D2LMGPU_PROFILE": "test"}
        self.manager.start_kernel(cwd=str(folder), env=environment)
        self.client, self.widgets = self.manager.client(), {}
        self.client.start_channels()
        self.client.wait_for_ready(SECONDS)

    def end(self):
        """End the kernel; what its lab has started must end by itself."""
        started = psutil.Process(self.manager.provisioner.pid).children(recursive=True)
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        assert left(started, SECONDS) == []

    def message(self):
        """The next message that goes to every front end."""
        message = self.client.get_iopub_msg(SECONDS)
        content = message["content"]
        if message["msg_type"] in ("comm_open", "comm_msg"):
            state = content["data"].get("state", {})
            self.widgets.setdefault(content["comm_id"], {}).update(state)
        return message

    def run(self, code):
        """Run a cell; what it prints."""
        cell, printed = self.client.execute(code), []
        while True:
            message = self.message()
            kind, content = message["msg_type"], message["content"]
            assert kind != "error", "\n".join(content["traceback"])
            if kind == "stream" and content["name"] == "stdout":
                printed.append(content["text"])
            of_cell = message["parent_header"].get("msg_id") == cell
            if of_cell and kind == "status" and content["execution_state"] == "idle":
                return "".join(printed)

    def lab(self):
        """(id, state) of the lab's widget."""
        return next(w for w in self.widgets.items() if "speedups" in w[1])

    def press(self, button):
        """What a front end sends when its user presses one of the lab's buttons."""
        data = {"method": "custom", "content": {"do": button}}
        content = {"comm_id": self.lab()[0], "data": data}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def wait_for_the_end(self):
        """Wait until the lab is idle again, after it was not."""
        _, lab = self.lab()
        for idle in (False, True):
            while (lab["state"]["status"] == "idle") is not idle:
                self.message()


@pytest.fixture
def kernel(request):
    kernel = Kernel((CHAPTERS / request.param).parent)
    yield kernel
    kernel.end()


def test_every_lab_is_here():
    assert len(LABS) == 6


KINDS = {(lab, lab) for lab in ("concise/pytorch", "scratch/mxnet")}  # in processes, in threads


@pytest.mark.parametrize(
    "kernel, chapter", sample(KINDS, [(lab, lab) for lab in LABS]), ids=LABS, indirect=["kernel"]
)
def test_run_trains_in_a_live_kernel(kernel, chapter):
    for cell in cells(chapter):
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if THE_LAB in source or TAGS & set(tags):  # the others take minutes, and no lab needs them
            kernel.run(source)
    kernel.press("run")
    kernel.wait_for_the_end()
    assert kernel.lab()[1]["state"]["message"] == "Finished." and not kernel.lab()[1]["troubles"]
    (row,), is_stable = json.loads(kernel.run(ROWS))
    status, num_samples, accuracy, samples_per_second = row
    assert (status, num_samples) == ("finished", 512)
    assert 0 < accuracy < 1 and samples_per_second > 0
    assert is_stable, "pressed again with nothing changed, it would be a repeat"
