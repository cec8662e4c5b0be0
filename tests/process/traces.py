"""What the processes of a test leave behind.

Every process that a test starts inherits a mark in its environment, by which those left over are
found.
"""

import time
import uuid

from processes import asked, marked


class Traces:
    """What the processes of one test leave: processes, listening addresses, temporary folders."""

    def __init__(self, folder):
        self.mark, self.folder = uuid.uuid4().hex, folder

    def processes(self, role=""):
        started = marked("D2LMGPU_TEST", self.mark)
        return [p for p in started if not role or asked(lambda p=p: self.role(p)) == role]

    @staticmethod
    def role(process):
        """'guard', 'supervisor' or 'worker': each is forked by the one before."""
        roles = ["guard", "supervisor", "worker"]
        if "d2lmgpu.process.ranks" not in process.cmdline():
            return "other"
        above = [p for p in process.parents() if "d2lmgpu.process.ranks" in p.cmdline()]
        return roles[len(above)] if len(above) < 3 else "other"

    def folders(self):
        return list(self.folder.glob("d2lmgpu-*"))

    def assert_none(self, but=(), seconds=20):
        def none():
            return not self.folders() and {p.pid for p in self.processes()} <= set(but)

        left = until(none, seconds) or [*map(str, self.processes()), *self.folders()]
        assert left is True, f"still there after {seconds} s: {left}"


def until(condition, seconds=20):
    """Whether ``condition()`` comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
