"""What the processes of a test leave behind.

Every process that a test starts inherits a mark in its environment, by which those left over are
found.
"""

import time
import uuid

from processes import asked, marked

from d2lmgpu.machine import hardware

SERVER = "fork server"
# Seconds. On one core, which the tests beside share, a run was seen to be gone after 20.
HANG = 20 if hardware.num_cores() > 1 else 60
IMPORT = 120  # seconds, also for a fork server to import PyTorch first
PROGRAMS = {"d2lmgpu.process.ranks", "d2lmgpu.process.forkserver"}


class Traces:
    """What the processes of one test leave: processes, listening addresses, temporary folders."""

    def __init__(self, folder):
        self.mark, self.folder = uuid.uuid4().hex, folder

    def processes(self, *roles):
        """All but the fork server, which stays, or those that play one of these roles."""
        playing = {p: asked(lambda p=p: self.role(p)) for p in marked("D2LMGPU_TEST", self.mark)}
        return [
            p for p, role in playing.items() if (role in roles or (not roles and role != SERVER))
        ]

    @staticmethod
    def role(process):
        """'fork server', 'guard', 'supervisor' or 'worker': each is forked by the one before."""
        line = [p for p in [*reversed(process.parents()), process] if PROGRAMS & {*p.cmdline()}]
        if process not in line:
            return "other"
        roles = [SERVER] * ("d2lmgpu.process.forkserver" in line[0].cmdline())
        roles += ["guard", "supervisor", "worker"]
        return roles[len(line) - 1] if len(line) <= len(roles) else "other"

    def folders(self):
        return list(self.folder.glob("d2lmgpu-*"))

    def assert_none(self, but=(), seconds=HANG, caller_ended=False):
        """With ``caller_ended`` the fork server, too, has to be gone."""

        def still():
            servers = self.processes(SERVER) if caller_ended else []
            return [p for p in [*self.processes(), *servers] if p.pid not in but]

        def none():
            return not self.folders() and not still()

        left = until(none, seconds) or [*map(str, still()), *self.folders()]
        assert left is True, f"still there after {seconds} s: {left}"


def until(condition, seconds=HANG):
    """Whether ``condition()`` comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
