"""The break-it lab in a notebook: a widget over a process that has hosts and a training.

Where hosts cannot be made, and in a built page, it shows the recorded run (``record``).
"""

import json
import os
import subprocess
import sys
import threading
import weakref

import anywidget
from traitlets import Bool, Dict, HasTraits, List, Unicode

from d2lmgpu.cluster import box
from d2lmgpu.course.breaking import keeper, record
from d2lmgpu.figures.site import BOOK
from d2lmgpu.machine.files import PACKAGE


class Running(HasTraits):
    """Hosts and a training on them, in a process of their own; what it says are these traits."""

    message = Unicode()
    buttons, outcomes = List(), List()
    now = Dict()
    runs = Bool()

    def __init__(self, num_hosts):
        super().__init__()
        self.num_hosts, self.process = num_hosts, None

    def start(self):
        """Make hosts and train on them; what was there before ends."""
        self.stop()
        self.process = subprocess.Popen(
            [*keeper.COMMAND, str(self.num_hosts)], text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *sys.path])},
        )  # fmt: skip
        self.outcomes, self.now, self.runs, self.pressed = [], {}, True, 0
        threading.Thread(target=_hear, args=(weakref.ref(self), self.process), daemon=True).start()
        weakref.finalize(self, self.process.stdin.close)

    def press(self, name):
        """Do a harm: the name of a button that is offered."""
        if self.runs:
            self.pressed += 1
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()

    def offered(self):
        """The names of the buttons that may be pressed now."""
        return [button["name"] for button in self.buttons if button["seconds"] is not None]

    def done(self):
        """What the harm that was pressed last has cost; None until that is known."""
        pressed = self.outcomes[-1] if len(self.outcomes) == self.pressed else {}
        return pressed if pressed.get("done") else None

    def stop(self):
        """End the training and remove the hosts; nothing is left."""
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def _hear(running, process):
    """Set the traits to what the process says, until it ends or nobody asks any more."""
    for line in process.stdout:
        if (one := running()) is None:
            return
        for name, value in json.loads(line).items():
            setattr(one, name, value)
        del one
    words = process.stderr.read()
    if (one := running()) is not None and one.process in (None, process):
        one.runs, one.buttons = False, []
        one.message = words.strip() or "All has ended, and nothing is left of it."


class BreakIt:
    """Three hosts, a training on them, and buttons that harm it: the last line of a cell.

    Nothing is made before the button *Start* is pressed. ``view.running`` is what it starts.
    Without the rights to make hosts, and in a built page, it shows what was recorded.
    """

    def __init__(self, num_hosts=3):
        self.num_hosts, self.view = num_hosts, None

    def _repr_mimebundle_(self, **kwargs):
        if os.environ.get(BOOK):
            return {"text/html": record.page()}
        self.view = self.view or BreakItView(self.num_hosts)
        return self.view._repr_mimebundle_(**kwargs)


class BreakItView(anywidget.AnyWidget):
    """The widget: what ``Running`` says, or the record; the browser sends {"do": …}."""

    _esm, _css = record.module(), record.styles()

    message, lacking, provenance = (Unicode().tag(sync=True) for _ in range(3))
    buttons, outcomes = (List().tag(sync=True) for _ in range(2))
    now = Dict().tag(sync=True)
    runs = Bool().tag(sync=True)

    def __init__(self, num_hosts):
        self.running = Running(num_hosts)
        super().__init__()
        self.lacking = "; ".join(box.missing())
        if self.lacking:
            for name, value in record.recorded().items():
                setattr(self, name, value)
        names = ["message", "buttons", "outcomes", "now", "runs"]
        self.running.observe(lambda change: setattr(self, change["name"], change["new"]), names)
        self.on_msg(lambda view, content, buffers: self.hear(**content))

    def hear(self, do, name=""):
        if do == "press":
            self.running.press(name)
        elif do == "start":
            self.running.start()
        elif do == "stop":
            self.running.stop()
