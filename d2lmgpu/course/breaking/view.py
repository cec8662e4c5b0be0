"""The break-it lab in a notebook: a widget over a process that has hosts and a training."""

import json
import os
import subprocess
import threading
from collections.abc import Callable

from traitlets import Bool, Dict, List, Unicode

from d2lmgpu.course.breaking import forecast, keeper, record
from d2lmgpu.course.breaking.messages import State
from d2lmgpu.figures.site import BOOK
from d2lmgpu.figures.widget import MessageError, Widget
from d2lmgpu.machine.files import PACKAGE
from d2lmgpu.process.cluster import box


def break_it_lab(num_hosts=3) -> "record.Page | BreakItLab":
    """So many hosts, a training on them, and buttons that harm it: the last line of a cell.

    Nothing is made before the button *Start* is pressed. Without the rights to make hosts, and in
    a built page, it shows what was recorded.
    """
    return record.Page() if os.environ.get(BOOK) else BreakItLab(num_hosts)


class BreakItLab(Widget):
    """The widget. Its traits are what the process says, or the record."""

    words = "A lab that breaks a training: run this cell, and it is here."
    _esm, _css = record.module(), record.styles()
    present = None  # the one in this kernel that has hosts

    message, provenance = (Unicode().tag(sync=True) for _ in range(2))
    buttons, outcomes = (List().tag(sync=True) for _ in range(2))
    now, runs = Dict(None, allow_none=True).tag(sync=True), Bool().tag(sync=True)
    names = List([*State.__annotations__]).tag(sync=True)  # of all that is drawn anew

    def __init__(self, num_hosts):
        super().__init__()
        self.num_hosts, self.process = num_hosts, None
        if lacking := box.missing():
            shown, of = record.recorded(), "; ".join(lacking)
            self.set_trait("outcomes", shown["outcomes"])
            self.provenance = f"No hosts here: that needs {of}. Recorded on {shown['provenance']}"

    @property
    def commands(self) -> dict[str, Callable]:
        """What its buttons call."""
        return {"start": self.start, "press": self.press, "stop": self.stop}

    def start(self) -> None:
        """Make hosts and train on them; those that this kernel had before end."""
        if BreakItLab.present:
            BreakItLab.present.stop()
        BreakItLab.present = self
        path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [*keeper.COMMAND, str(self.num_hosts)],
            text=True,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        self.outcomes = []
        self.now = None
        self.runs = True
        self.pressed = 0
        threading.Thread(target=self._hear, args=(self.process,), daemon=True).start()

    def press(self, name: str) -> None:
        """Do a harm, or mend one: the name of a button. Raises MessageError for others."""
        if name not in forecast.HARMS | forecast.MENDS:
            raise MessageError(f"{name!r:.200} is no harm: see the names of the buttons.")
        if self.runs:
            self.pressed += 1
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()

    def offered(self) -> list:
        """The names of the buttons that may be pressed now."""
        return [button["name"] for button in self.buttons if button["seconds"] is not None]

    def done(self) -> dict | None:
        """What the harm that was pressed last has cost; None until that is known."""
        pressed = self.outcomes[-1] if len(self.outcomes) == self.pressed else {}
        return pressed if pressed.get("done") else None

    def stop(self) -> None:
        """End the training and remove the hosts: nothing is left."""
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.message = "All has ended, and nothing is left of it."

    def _hear(self, process):
        for line in process.stdout:
            if self.process is process:
                for name, value in json.loads(line).items():
                    setattr(self, name, value)
        if self.process is process:
            self.runs = False
            self.buttons = []
            self.now = None
            self.message = process.stderr.read().strip() or self.message
