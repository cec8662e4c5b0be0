"""`make book` and `make test` on machines that lack something: a table, a row a machine.

``python tests/setup/every_machine.py [NAME ...]``, as root on Linux. Each machine is a fresh clone
with an empty home, in a mount namespace in which what it lacks is hidden. `make setup` is the same
on all machines, with the package registries; without ``network``, the two commands run after it
in a network namespace of their own. What the commands print stays in `.cache/machines/NAME/`. The
rows are kept in records/machines.json, those of other machines stay: a row takes more than an hour.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.records import store

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".cache" / "machines"
KEPT = ROOT / "records" / "machines.json"
ACCOUNT = f"d2lmgpu-reader-{os.getpid()}"  # rows may be run side by side
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PLACE = "/srv"  # a home that is read-only is a mount, and below /tmp and /var/tmp there are none
BROWSERS = ("chromium*", "google-chrome*", "firefox*")
LEFT_OUT = re.compile(r"^SKIPPED \[(\d+)\] (?:\S+ )?(.*)|^(set-up: no .*)", re.MULTILINE)


@dataclass
class Machine:
    """What one machine is like."""

    words: str
    hidden: tuple[str, ...] = ()  # programs, as patterns of their names
    mounts: tuple[str, ...] = ()  # commands of root's in the mount namespace
    before: str = ":"  # a command of the account's before each of its own
    root: bool = False
    network: bool = True
    git: bool = True
    room: str = ""  # of the disk that the clone is on


HIDE_DATA = "mount -t tmpfs tmpfs /usr/share/datasets"
CONTAINER = (
    "mount -t tmpfs -o ro tmpfs /sys/fs/cgroup",
    "mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm",
)
AS_ON_ARM = (  # for which the registry has no Chromium
    "mount -t tmpfs tmpfs /mnt",
    "printf '#!/bin/sh\\necho Linux aarch64\\n' > /mnt/uname && chmod 755 /mnt/uname",
    "mount --bind /mnt/uname /usr/bin/uname",
)

MACHINES = {
    "account": Machine(
        "an ordinary account, no browser, no data set, no network but the registries",
        BROWSERS,
        (HIDE_DATA,),
    ),
    "odd account": Machine(
        "as above; a zip from GitHub, a home that is read-only, umask 077, the C locale",
        BROWSERS,
        (HIDE_DATA, 'mount --bind -o ro "$HOME" "$HOME"'),
        "umask 077; export LC_ALL=C LANG=C",
        git=False,
    ),
    "offline container": Machine(
        "root, one core, no Node, no cgroups, /dev/shm of 64 MB, /tmp read-only, no network after"
        " the set-up",
        ("node", "npm", "npx"),
        (*CONTAINER, "mount -t tmpfs -o ro tmpfs /tmp"),
        before="taskset -cp 1 $$ >&2",
        root=True,
        network=False,
    ),
    "no Chromium": Machine(
        "an ordinary account, no browser and none in the registries, no Node, no data set, /tmp"
        " where nothing may be executed",
        (*BROWSERS, "node", "npm", "npx"),
        (HIDE_DATA, *AS_ON_ARM, "mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp"),
    ),
    "2 GB of disk": Machine(
        "an ordinary account, 2 GB of disk for the clone", BROWSERS, (HIDE_DATA,), room="2g"
    ),
    "another Python": Machine("an ordinary account, no Python 3.11", ("python3.11",)),
}


def hide(pattern):
    """Commands that hide the programs of a pattern, wherever ``PATH`` has them."""
    paths = {path.resolve() for folder in PATH.split(":") for path in Path(folder).glob(pattern)}
    return [f"mount --bind /dev/null {shlex.quote(str(path))}" for path in sorted(paths)]


def run(machine, folder, command, log, alone):
    """Run one command on the machine: its exit code and its seconds."""
    lines = [line for pattern in machine.hidden for line in hide(pattern)]
    lines += [*machine.mounts, *(["ip link set lo up"] if alone else [])]
    inner = f"{machine.before}; cd {folder}/course && exec {command}"
    as_account = ["setpriv", "--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]
    script = "set -e\n" + "\n".join(lines) + '\nexec "$@"'
    apart = ["unshare", "--mount", *(["--net"] if alone else []), "sh", "-c", script, "sh"]
    began = time.monotonic()
    with open(log, "w") as file:
        done = subprocess.run(
            [*apart, *([] if machine.root else as_account), "bash", "-c", inner],
            env=os.environ | {"HOME": f"{folder}/home", "PATH": PATH},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return done.returncode, time.monotonic() - began


def prepare(machine, folder):
    """A clone and a home of the account's own."""
    folder.chmod(0o755)
    if machine.room:
        size = ["-o", f"size={machine.room}"]
        subprocess.run(["mount", "-t", "tmpfs", *size, "tmpfs", folder], check=True)
    (folder / "home").mkdir()
    subprocess.run(["git", "clone", "--quiet", ROOT, folder / "course"], check=True)
    if not machine.git:
        shutil.rmtree(folder / "course" / ".git")
    if not machine.root:
        subprocess.run(["chown", "-R", f"{ACCOUNT}:{ACCOUNT}", folder], check=True)


def row(name, machine, folder):
    """The commands' ends and what was left out, as they are printed and kept."""
    logs = LOGS / name.replace(" ", "-")
    logs.mkdir(parents=True, exist_ok=True)
    made = store.provenance(f"python tests/setup/every_machine.py {shlex.quote(name)}")
    prepare(machine, folder)
    commands, left_out = [], Counter()
    for command in ("make setup", "make book", "make test"):
        log = logs / command.replace(" ", "-")
        alone = not machine.network and command != "make setup"
        code, seconds = run(machine, folder, command, log, alone)
        text = log.read_text(errors="replace")
        last = text.splitlines()[-6:] if code else []
        commands.append({"command": command, "exit": code, "seconds": round(seconds), "last": last})
        print(
            f"{name}: {command}: exit code {code}, {seconds:.0f} s", *last, sep="\n    ", flush=True
        )
        for count, why, line in LEFT_OUT.findall(text):
            left_out[why.removeprefix("left out: ") or line] += int(count or 0)
        if code and command == "make setup":
            break
    written = sorted(os.listdir(folder / "home"))
    for why, count in left_out.items():
        print(f"    left out: {count or 'said'}: {why}", flush=True)
    print(f"    written to the home folder: {written}", flush=True)
    answer = {"name": name, "words": machine.words, "commands": commands}
    return answer | {"left_out": left_out, "home": written, "made": made}


def keep(answer):
    """Put a row in the place of the one of this machine that was kept before."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["rows"] if KEPT.exists() else []
    by_name = {row["name"]: row for row in rows} | {answer["name"]: answer}
    rows = [by_name[name] for name in MACHINES if name in by_name]
    store.save(KEPT, store.provenance("make soak-machines") | {"rows": rows})


@contextmanager
def account(machine):
    """The account that a machine is used by, unless that is root."""
    if not machine.root:
        subprocess.run(["useradd", "--no-create-home", ACCOUNT], check=True)
    try:
        yield
    finally:
        if not machine.root:
            subprocess.run(["userdel", ACCOUNT])


def main(names):
    """Print the rows of the machines of these names, of all if there are none."""
    for name in names or MACHINES:
        folder = Path(tempfile.mkdtemp(prefix="d2lmgpu-machine-", dir=PLACE))
        try:
            with account(MACHINES[name]):
                keep(row(name, MACHINES[name], folder))
        finally:
            if MACHINES[name].room:
                subprocess.run(["umount", folder])
            shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
