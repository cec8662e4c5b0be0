"""What runs on the hosts of a cluster, seen and touched from the machine that has them."""

import contextlib
import json
import os
import signal
from pathlib import Path

from d2lmgpu.process.cluster import links


class Hosts:
    """The hosts n1, n2, … of the cluster that is up in ``folder``."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        self.names, self.cut = list(self.state["hosts"]), set()

    def first(self, host) -> int | None:
        """The process with whose end the host ends; None if it has."""
        pid = self.state["hosts"][host]["pid"]
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
            return int(children[0]) if children else None

    def alive(self, host) -> bool:
        return self.first(host) is not None

    def commands(self, host) -> dict:
        """{pid: the words of its command} of what runs there beside the first process."""
        if (first := self.first(host)) is None:
            return {}
        commands = {}
        with contextlib.suppress(OSError):  # the host has gone
            namespace = os.readlink(f"/proc/{first}/ns/pid")
            for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                with contextlib.suppress(OSError):  # the process has gone
                    if pid != first and os.readlink(f"/proc/{pid}/ns/pid") == namespace:
                        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                        if words != [b""]:
                            commands[pid] = [os.fsdecode(word) for word in words[:-1]]
        return commands

    def status(self, pid) -> dict:
        """{name: words} that the system says of a process; nothing of one that has gone."""
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
            return {name: words.strip() for name, words in (line.split(":", 1) for line in lines)}
        return {}

    def kill(self, host) -> None:
        """All of its processes die at once; the system closes their connections."""
        os.kill(self.first(host), signal.SIGKILL)

    def link(self, host, upward) -> None:
        """Cut the host's link, or mend it; ``cut`` has those that are."""
        (self.cut.discard if upward else self.cut.add)(host)
        links.run("ip", "link", "set", self.state["bridge"] + host, "up" if upward else "down")

    def rate(self, host, rate) -> None:
        """Let ``rate`` through this host's link alone."""
        links.shape(self.state["bridge"], {host: self.state["hosts"][host]}, rate)
