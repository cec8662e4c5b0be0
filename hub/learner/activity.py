"""Work is activity: an extension of a learner's server, which tells the hub who still computes.

JupyterHub takes for activity what is said: a request of a browser, a kernel's message, a line in
a terminal. A training that prints nothing says nothing for hours, and the idle culler would end it.
"""

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psutil
from tornado.ioloop import PeriodicCallback
from traitlets import Integer
from traitlets.config import Configurable

KEEPER = str(Path(__file__).resolve().parents[1] / "keeper.py")
COMPUTES = 0.03  # of a core: an idle kernel takes less than a hundredth
LAST = "work_last_activity"  # jupyter_server takes every setting of such a name for activity


class Work(Configurable):
    """Whether this server's kernels, terminals and other processes are at work."""

    silent_seconds = Integer(
        21600, min=0, config=True, help="For so long work counts that says nothing."
    )

    def __init__(self, app, seconds: float):
        super().__init__(parent=app)
        self.app, self.seconds = app, seconds
        self.spent = {}  # a process's id and start -> seconds of a core, at the last look

    def look(self) -> None:
        """Note that the server is active, if it is at work and was heard of lately."""
        settings = self.app.web_app.settings
        ours = settings.pop(LAST, None)
        heard = self.app.web_app.last_activity()
        computing = self.is_computing()  # at each look, or the next one compares with long ago
        now = datetime.now(timezone.utc)
        at_work = computing or self.has_busy_kernel() or self.has_busy_terminal()
        if at_work and now - heard < timedelta(seconds=self.silent_seconds):
            settings[LAST] = now
        elif ours:
            settings[LAST] = ours

    def has_busy_kernel(self) -> bool:
        """Whether a cell runs."""
        kernels = self.app.kernel_manager
        return any(is_busy(kernels.get_kernel(id)) for id in kernels.list_kernel_ids())

    def has_busy_terminal(self) -> bool:
        """Whether a program runs in a terminal, in the foreground or in the background."""
        manager = self.app.web_app.settings.get("terminal_manager")
        shells = [terminal.ptyproc for terminal in manager.terminals.values()] if manager else []
        # Not by its children alone: those of a loop may be too short-lived to be found.
        return any(os.tcgetpgrp(shell.fd) != shell.pid or children(shell.pid) for shell in shells)

    def is_computing(self) -> bool:
        """Whether a process of this server has computed since the last look: a lab's run, say."""
        before, self.spent = self.spent, {}
        for process in started():
            try:
                times = process.cpu_times()
                self.spent[process.pid, process.create_time()] = times.user + times.system
            except psutil.Error:  # it has just ended
                continue
        more = (now - before.get(key, now) for key, now in self.spent.items())
        return max(more, default=0) > COMPUTES * self.seconds


def is_busy(kernel) -> bool:
    """Whether the kernel's process said last that it runs a cell.

    One that died of a cell was busy to its end, and the server still has that of the process which
    it started in its place and which has said nothing.
    """
    pid = kernel.provisioner and kernel.provisioner.pid
    if kernel.execution_state != "busy" or pid is None:
        return False
    try:
        started_at = psutil.Process(pid).create_time()
    except psutil.Error:
        return False
    return started_at < kernel.last_activity.timestamp()


def children(pid: int) -> list[psutil.Process]:
    """All processes below ``pid``; none if it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def started() -> list[psutil.Process]:
    """All processes that this server has started, whoever is their parent now.

    A job that was left to itself, by nohup say, is below the server's keeper, if it has one.
    """
    own = psutil.Process()
    keeper = own.parent()
    if keeper is None or KEEPER not in keeper.cmdline():
        return children(own.pid)
    return [process for process in children(keeper.pid) if process != own]


def _jupyter_server_extension_points():
    return [{"module": "activity"}]


def _load_jupyter_server_extension(app):
    # As often as JupyterHub's own extension tells the hub who was active.
    seconds = int(os.environ.get("JUPYTERHUB_ACTIVITY_INTERVAL") or 300)
    work = Work(app, seconds)
    app.web_app.settings["work_looks"] = looks = PeriodicCallback(work.look, seconds * 1000)
    looks.start()
