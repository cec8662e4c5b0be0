"""The process that has hosts and training: python -m d2lmgpu.course.breaking.keeper NUM_HOSTS

It is the first one in namespaces of its own (``COMMAND``), also of the network: hosts, links, disks
and files are in there, and go with it, however it ends. A line of its standard input is a harm's
name; with the end of that input it ends. Each line that it prints is a dict, as JSON: those fields
of ``messages.State`` that are new.
"""

import copy
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

from d2lmgpu.course.breaking import forecast, harms
from d2lmgpu.course.breaking.account import AFTER, BEFORE, Account, Harm
from d2lmgpu.course.breaking.messages import Button, Outcome
from d2lmgpu.course.breaking.training import LIMIT, Training
from d2lmgpu.process.cluster import box, inside, state

COMMAND = [
    "unshare",
    "--kill-child",
    "--pid",
    "--mount",
    "--net",
    "--uts",
    "--fork",
    "--mount-proc",
    sys.executable,
    "-m",
    "d2lmgpu.course.breaking.keeper",
]
PLACE = Path("/dev/shm")  # a disk in memory, and here one of its own
NUM_TRAIN, EPOCHS, DISK = 3000, 400, "6m"
OPTIONS = [
    f"--num-train={NUM_TRAIN}",
    f"--batch-size={forecast.BATCH}",
    f"--epochs={EPOCHS}",
    f"--save-every={forecast.SAVE_EVERY}",
]
DO = {
    "worker": harms.kill_worker,
    "host": harms.kill_host,
    "launcher": harms.kill_launcher,
    "cut": harms.cut,
    "heal": harms.heal,
    "slow": harms.slow,
    "quicken": harms.quicken,
    "fill": harms.fill_disk,
    "free": harms.free_disk,
}
LABELS = forecast.HARMS | forecast.MENDS
TICK = 0.1  # seconds between two looks at the hosts
SAY = 3  # looks between two pictures
SHOWN = 20  # seconds in the picture while nothing is harmed


def say(**news) -> None:
    print(json.dumps(news), flush=True)


def make_hosts(num_hosts) -> inside.Hosts:
    """Hosts in namespaces of their own, and the small disk for checkpoints that they see."""
    for place, size in ((PLACE, "50%"), (PLACE / "checkpoints", DISK)):
        place.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ[state.VARIABLE] = str(PLACE / "cluster")
    box.up(num_hosts, f"{forecast.FULL / 1e6:.0f}mbit")
    # Names are looked up: there is nobody to ask in this network.
    named = state.folder() / "hosts"
    subprocess.run(["mount", "--bind", named, "/etc/hosts"], check=True)
    return inside.Hosts(state.folder())


class Keeper:
    """The training, the account of it, and the harms that were done, the last one perhaps now."""

    def __init__(self, hosts):
        self.hosts, self.account = hosts, Account(NUM_TRAIN)
        self.training = Training(hosts, PLACE, *OPTIONS)
        self.taken = 0
        self.harm = None
        self.outcomes = []
        self.broken = set()
        self.trouble = ""

    def look(self) -> None:
        """Take in what has been written down since the last look."""
        self.training.look()
        lines, account = self.training.news(self.taken), self.account
        for line in sorted(lines, key=lambda line: line["time"]):
            account.add(line)
        self.taken += len(lines)
        if account.start is not None:
            account.now = time.time() - account.start
        if self.harm is None and self.training.process.poll() is not None:
            self.trouble = self.trouble or f"The training has ended.\n{self.training.words()}"
        if self.harm:
            self.outcomes[-1] |= self.outcome()
            if self.outcomes[-1]["done"]:
                self.harm = None
        else:
            account.forget()

    def outcome(self) -> dict:
        """What is known by now of the present harm."""
        harm, now = self.harm, self.account.now
        known = {} if harm.ended is None else self.account.cost(harm)
        lasts = known.get("together", harm.ended and harm.ended - harm.at)
        until = now if lasts is None else min(now, harm.at + lasts + AFTER)
        late = harm.ended is not None and now > harm.ended + LIMIT
        over = {"lost", "updates"} <= known.keys() and until < now
        rows = [
            [*forecast.ROWS[name], harm.predicted[name], known.get(name)]
            for name in forecast.ROWS
            if name in harm.predicted
        ]
        begin, done = max(0, harm.at - BEFORE), over or late or bool(self.trouble)
        picture = self.account.picture(begin, until)
        return picture | {"done": done, "rows": rows, "at": harm.at - begin}

    def forecast(self, name) -> dict | None:
        """What the harm would cost now; None while it cannot be done."""
        account, ranks = self.account, len(self.account.newest())
        update = account.update_seconds()
        few = ranks < 2 and name in ("host", "cut", "slow")
        if self.harm or self.trouble or update is None or few:
            return None
        return forecast.cost(
            name, ranks, len(self.hosts.names), account.lag(), update, account.starts()
        )

    def buttons(self) -> list[Button]:
        """What may be pressed: its name, its words and the seconds that it would cost, or None."""
        offered = [
            forecast.MENDED[harm] if harm in self.broken else harm for harm in forecast.HARMS
        ]
        costs = [(name, self.forecast(name) or {}) for name in offered]
        return [
            {
                "name": name,
                "label": LABELS[name],
                "seconds": cost.get("together", cost.get("pause")),
            }
            for name, cost in costs
        ]

    def press(self, name) -> None:
        """Do the harm, with what was predicted before."""
        if expected := self.forecast(name):
            self.harm = Harm(name, time.time() - self.account.start, expected)
            outcome: Outcome = {"name": name, "title": LABELS[name], "said": ""} | self.outcome()
            self.outcomes.append(outcome)
            threading.Thread(target=self.do, args=(self.harm, outcome), daemon=True).start()

    def do(self, harm, outcome) -> None:
        undone = {after: before for before, after in forecast.MENDED.items()}
        try:
            outcome["said"] = DO[harm.name](self.training)
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
        if harm.name in forecast.MENDED:
            self.broken.add(harm.name)
        self.broken.discard(undone.get(harm.name))
        harm.ended = time.time() - self.account.start

    def message(self) -> str:
        if self.trouble:
            return self.trouble
        if self.harm:
            return f"{LABELS[self.harm.name]}: what it costs is being measured."
        ranks = len(self.account.newest())
        return f"{ranks} ranks train." if ranks else "The hosts are there; Python starts on them."


def main(num_hosts) -> None:
    presses = queue.Queue()

    def hear():
        for line in sys.stdin:
            presses.put(line.strip())
        os._exit(0)  # the caller has gone, and all that is here goes with this process

    threading.Thread(target=hear, daemon=True).start()
    say(message=f"{num_hosts} hosts are being made.", buttons=[])
    keeper, last_outcomes = Keeper(make_hosts(num_hosts)), None
    for number in itertools.count():
        keeper.look()
        while not presses.empty():
            keeper.press(presses.get())
        if number % SAY == 0 or keeper.trouble:
            account = keeper.account
            begin = max(0, account.now - SHOWN)
            say(
                message=keeper.message(),
                buttons=keeper.buttons(),
                now=account.picture(begin, account.now),
            )
            if keeper.outcomes != last_outcomes:
                last_outcomes = copy.deepcopy(keeper.outcomes)
                say(outcomes=last_outcomes)
        if keeper.trouble:
            return
        time.sleep(TICK)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except state.ClusterError as error:
        sys.exit(str(error))
