"""Memory and CPU limits for each learner's server, where the kernel lets the hub set them.

One control group (cgroup v2) per server, below the hub's own. That takes root and a hub whose
group is delegated to it, as in the unit of install.py. Anywhere else ``Groups.open`` says
what is missing, and the hub says so in its log and in the form: a limit is never just ignored.
"""

import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PERIOD_US = 100_000  # the kernel's own default period of cpu.max


class Unavailable(RuntimeError):
    """Why this system lets the hub set no limits."""


@dataclass
class Groups:
    """The cgroup folder whose sub-groups hold one server each."""

    folder: Path

    @classmethod
    def open(cls, root=Path("/sys/fs/cgroup"), membership=Path("/proc/self/cgroup")):
        """The hub's own group, made ready for sub-groups. Raises ``Unavailable`` with the reason.

        A group with limited sub-groups may hold no process itself, so the hub (and what it has
        started) moves into a sub-group of its own.
        """
        if not (root / "cgroup.controllers").exists():
            raise Unavailable("this system does not use cgroup v2")
        own = re.search(r"(?m)^0::/(.*)$", membership.read_text())[1]
        if not own:
            raise Unavailable("the hub is in the root cgroup: start it as a service")
        folder = root / own
        if folder.name == "hub":  # a restart within the same group
            folder = folder.parent
        missing = {"memory", "cpu"} - set((folder / "cgroup.controllers").read_text().split())
        if missing:
            raise Unavailable(f"the hub's cgroup is not given {', '.join(sorted(missing))}")
        try:
            (folder / "hub").mkdir(exist_ok=True)
            for pid in (folder / "cgroup.procs").read_text().split():
                (folder / "hub" / "cgroup.procs").write_text(pid)
            (folder / "cgroup.subtree_control").write_text("+memory +cpu")
        except OSError as error:
            raise Unavailable(f"the hub's cgroup is not delegated to it ({error})") from error
        return cls(folder)

    def make(self, owner: str, memory_bytes: int | None, cpus: float | None) -> Path:
        """A group for ``owner`` with these limits (None: no limit); returns its folder."""
        group = self._group(owner)
        group.mkdir(exist_ok=True)
        (group / "memory.max").write_text(str(memory_bytes) if memory_bytes else "max")
        quota = str(round(cpus * PERIOD_US)) if cpus else "max"
        (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        return group

    def kill(self, owner: str) -> None:
        """Kill every process in the group of ``owner``, if it has one."""
        switch, processes = (self._group(owner) / name for name in ("cgroup.kill", "cgroup.procs"))
        if switch.exists():
            switch.write_text("1")
            return
        killed = set()  # before Linux 5.14: one by one, until none has been forked meanwhile
        while processes.exists() and (new := set(processes.read_text().split()) - killed):
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            killed |= new

    def remove_empty(self) -> None:
        """Remove the groups without a process.

        A killed process takes a moment to leave its group, which a later call then removes. Not
        for a thread: the first process of a group just made enters it before the hub's loop does
        anything else.
        """
        for group in self.folder.glob("learner-*"):
            with suppress(OSError):  # a process is in it
                group.rmdir()

    def _group(self, owner):
        # In hexadecimal: two owners never share a group, and a name never leaves the folder.
        return self.folder / f"learner-{owner.encode().hex()}"


def enter(group: Path) -> None:
    """Move the calling process into ``group``: called in the child before it becomes the server."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
